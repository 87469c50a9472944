"""An agent whose tools are guarded is warned before it repeats a known mistake, once; then it does what it wants."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from typing import Any

import pytest
from llama_agents import function_agent, only_episode, with_block
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent, base_agent
from llama_index.core.tools import FunctionTool, QueryEngineTool, ToolMetadata
from llama_index.core.tools.types import AsyncBaseTool, BaseTool, ToolOutput
from llama_index.core.workflow import Context, StartEvent, StopEvent, Workflow, step
from mistakes import ERROR, RIGHT, TASK, WRONG, answered, is_warning, known_mistake, solved
from scripted_llm import ScriptedLLM
from warning_rows import rows_of
from workflows.events import HumanResponseEvent, InputRequiredEvent

from cascade_memory import Ranking

pytestmark = [
    pytest.mark.usefixtures("always_warned"),
    pytest.mark.filterwarnings("ignore:reward_fn gave 0"),  # what is judged here are steps, not solutions
]

MISTAKE = ("query", {"sql": WRONG})


def heeding(messages: Any) -> Any:
    """Repair the query after a warning, or give up."""
    return ("query", {"sql": RIGHT}) if is_warning(messages[-1].content) else "I do not know."


@pytest.fixture
def memory(make):
    memory = make(
        ranking=Ranking(abstain=False), reward_fn=lambda episode: None if episode.status == "error" else solved(episode)
    )
    known_mistake(memory)
    return memory.install()


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def query(ran: list[str]) -> Any:
    def query(sql: str) -> str:
        """Ask the database."""
        ran.append(sql)
        return answered(sql)

    return query


def last_episode(memory: Any) -> Any:
    memory.sync()
    return next(memory.episodes.all(newest_first=True))


def checks(memory: Any) -> list[bool]:
    """The last episode's decisions whether to warn."""
    return [one.warned for one in rows_of(memory).checks(last_episode(memory).id)]


async def test_a_failing_call_is_blamed_when_the_reward_comes_and_the_next_agent_is_warned(make, query, ran):
    memory = make(reward_fn=solved).install()
    failing = function_agent(MISTAKE, "I do not know.", tools=memory.guarded([query]))
    await failing.run("who works in Paris?", memory=with_block(memory))
    (step,) = only_episode(memory).solution.steps
    assert (step.failed, step.observation) == (True, ERROR)
    (warning,) = memory.warnings.all()
    assert (warning.tool, warning.happened, warning.why) == ("query", ERROR, "failed")
    memory.warnings.restore(warning.id)
    heeded = function_agent(MISTAKE, heeding, "Ann does.", tools=memory.guarded([query]))
    await heeded.run(TASK, memory=with_block(memory))
    assert is_warning(heeded.llm.seen[1][-1].content)
    assert ran == [WRONG, RIGHT]


async def test_an_agent_that_insists_gets_its_tool(memory, query, ran):
    insisting = function_agent(MISTAKE, MISTAKE, MISTAKE, "I give up.", tools=memory.guarded([query]))
    await insisting.run(TASK, memory=with_block(memory))
    assert [is_warning(seen[-1].content) for seen in insisting.llm.seen] == [False, True, False, False]
    assert ran == [WRONG, WRONG]
    assert checks(memory) == [True]


async def test_a_warning_is_no_step_of_a_solution_and_nobody_is_blamed_for_it(memory, query):
    heeded = function_agent(MISTAKE, heeding, "Ann does.", tools=memory.guarded([query]))
    await heeded.run(TASK, memory=with_block(memory))
    solution = last_episode(memory).solution
    assert [one.arguments for one in solution.steps] == [{"sql": RIGHT}]
    gave_up = function_agent(MISTAKE, "I give up.", tools=memory.guarded([query]))
    await gave_up.run(TASK, memory=with_block(memory))
    assert last_episode(memory).reward == 0.0
    assert [one.times for one in memory.warnings.all()] == [1]
    assert ERROR not in memory.recall(TASK).render()


async def test_a_react_agent_is_warned(memory, query, ran):
    action = f'Thought: I ask.\nAction: query\nAction Input: {{"sql": "{WRONG}"}}'
    repaired = action.replace(WRONG, RIGHT)
    script = [action, lambda seen: repaired if is_warning(seen[-1].content) else action, "Thought: I know.\nAnswer: Ann does."]
    agent = ReActAgent(llm=ScriptedLLM(script=script, calls_tools=False), tools=memory.guarded([query]))
    await agent.run(TASK, memory=with_block(memory))
    assert ran == [RIGHT]
    assert [one.arguments for one in last_episode(memory).solution.steps] == [{"sql": RIGHT}]


async def test_arun_and_blocks_warn_without_a_global_hook(make, query, ran):
    memory = make(reward_fn=solved)
    known_mistake(memory)
    heeded = function_agent(MISTAKE, heeding, "Ann does.", tools=memory.guarded([query]))
    _, episode = await memory.arun(heeded, TASK)
    assert ran == [RIGHT]
    assert episode.reward == 1.0
    (tool,) = memory.guarded([query])
    with memory.episode(TASK) as block:
        assert is_warning(tool(sql=WRONG))
        assert tool(sql=RIGHT).content == "Ann works there"
        block.solution = "Ann"


async def test_agents_that_hand_off_are_warned_in_the_episode_of_their_run(memory, query, ran):
    handing = ("handoff", {"to_agent": "second", "reason": "it asks"})
    first = function_agent(handing, name="first", description="plans", tools=(), can_handoff_to=["second"])
    script = [MISTAKE, MISTAKE, heeding, "Ann does."]
    tools = memory.guarded([query])
    second = FunctionAgent(llm=ScriptedLLM(script=script), tools=tools, name="second", description="asks")
    await AgentWorkflow(agents=[first, second], root_agent="first").run(TASK, memory=with_block(memory))
    assert ran == [RIGHT]
    assert checks(memory) == [True]


async def test_a_step_of_a_workflow_of_ones_own_is_warned(memory, query, ran):
    (tool,) = memory.guarded([query])

    class Ask(Workflow):
        @step
        async def go(self, event: StartEvent) -> StopEvent:
            await memory.aretrieve(event.task)
            first = await tool.acall(sql=WRONG)
            second = await tool.acall(sql=RIGHT if first.is_error else WRONG)
            return StopEvent(result={"answer": second.content})

    await Ask().run(task=TASK)
    assert ran == [RIGHT]
    assert last_episode(memory).answer == "Ann works there"


async def test_where_nothing_was_recalled_the_tool_runs(memory, query, ran):
    (tool,) = memory.guarded([query])
    assert tool(sql=RIGHT).content == "Ann works there"
    with pytest.raises(ValueError, match=ERROR):
        tool(sql=WRONG)
    await function_agent(MISTAKE, "I give up.", tools=[tool]).run(TASK)
    assert ran == [RIGHT, WRONG, WRONG]


# -- every kind of tool --------------------------------------------------------------------------------------------------


async def test_a_coroutine_function_is_guarded(memory, ran):
    async def query(sql: str) -> str:
        """Ask the database."""
        await asyncio.sleep(0)
        ran.append(sql)
        return answered(sql)

    heeded = function_agent(MISTAKE, heeding, "Ann does.", tools=memory.guarded([FunctionTool.from_defaults(async_fn=query)]))
    await heeded.run(TASK, memory=with_block(memory))
    assert ran == [RIGHT]


async def test_a_tool_that_takes_the_context_gets_it(memory, ran):
    async def query(ctx: Context, sql: str) -> str:
        """Ask the database."""
        await ctx.store.set("asked", sql)
        ran.append(await ctx.store.get("asked"))
        return answered(sql)

    query.__annotations__["ctx"] = Context  # as it is where annotations are not postponed: LlamaIndex does not resolve them
    heeded = function_agent(MISTAKE, heeding, "Ann does.", tools=memory.guarded([query]))
    await heeded.run(TASK, memory=with_block(memory))
    assert ran == [RIGHT]


@pytest.mark.skipif(
    "waiting_for_event" not in inspect.getsource(base_agent), reason="this LlamaIndex takes waiting for an error of the tool"
)
async def test_a_tool_that_waits_for_a_person_is_run_again_and_warned_of_once(memory, ran):
    async def query(ctx: Context, sql: str) -> str:
        """Ask the database, once somebody allows it."""
        answer = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="may I?"))
        ran.append(sql)
        return f"{answer.response}: {answered(sql)}"

    query.__annotations__["ctx"] = Context
    heeded = function_agent(MISTAKE, heeding, "Ann does.", tools=memory.guarded([query]))
    handler = heeded.run(TASK, memory=with_block(memory))
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler
    assert ran == [RIGHT]
    assert [one.observation for one in last_episode(memory).solution.steps] == ["yes: Ann works there"]
    assert checks(memory) == [True]


class OldTool(BaseTool):
    """A tool of the old kind, which knows no event loop and takes its one argument as it is."""

    def __init__(self, ran: list[str]) -> None:
        self.ran = ran

    @property
    def metadata(self) -> ToolMetadata:
        return ToolMetadata("Ask the database.", name="query")

    def __call__(self, input: Any) -> ToolOutput:
        self.ran.append(input)
        return ToolOutput(content=answered(input), tool_name="query", raw_input={"input": input}, raw_output=None)


async def test_a_tool_of_another_kind_is_guarded_and_keeps_its_attributes(memory, ran):
    (tool,) = memory.guarded([OldTool(ran)])
    assert isinstance(tool, AsyncBaseTool)
    assert tool.ran is ran
    memory.reward(memory.recall(TASK).episode_id, 0.0, solution=[old_step()], source="env")
    for one in memory.warnings.all():
        memory.warnings.restore(one.id)
    mistake = ("query", {"input": WRONG})
    repair: Any = lambda seen: ("query", {"input": RIGHT}) if is_warning(seen[-1].content) else "I do not know."  # noqa: E731
    await function_agent(mistake, repair, "Ann does.", tools=[tool]).run(TASK, memory=with_block(memory))
    assert ran == [RIGHT]
    with memory.episode(TASK):
        assert is_warning(tool(WRONG))


def old_step() -> Any:
    from cascade_memory import Step

    return Step(tool="query", arguments={"input": WRONG}, observation=ERROR, failed=True)


def test_a_query_engines_tool_and_partial_parameters_stay_what_they_are(memory, ran):
    from llama_index.core.query_engine import RetrieverQueryEngine

    engine = RetrieverQueryEngine.from_args(memory, llm=ScriptedLLM(script=["Ann"]))
    described = QueryEngineTool.from_defaults(engine, name="cases", description="Cases.")

    def query(sql: str, limit: int) -> str:
        """Ask the database."""
        ran.append(f"{sql} limit {limit}")
        return "Ann"

    partial = FunctionTool.from_defaults(query, partial_params={"limit": 3}, return_direct=True)
    one, other = memory.guarded([described, partial])
    assert one.query_engine is engine
    assert (one.metadata, other.metadata) == (described.metadata, partial.metadata)
    with memory.episode(TASK):
        assert is_warning(other(sql=WRONG))
        assert other(sql=RIGHT).content == "Ann"
    assert ran == [f"{RIGHT} limit 3"]


# -- failures ------------------------------------------------------------------------------------------------------------


async def test_a_failing_memory_changes_nothing(memory, query, ran, monkeypatch):
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(rows_of(memory), "checks", broken)
    monkeypatch.setattr(rows_of(memory), "note_check", broken)
    insisting = function_agent(MISTAKE, "I give up.", tools=memory.guarded([query]))
    await insisting.run(TASK, memory=with_block(memory))
    assert ran == [WRONG]
    assert str(insisting.llm.seen[1][-1].content) == ERROR
    assert not memory.health().ok


async def test_many_runs_at_once_are_warned_each_in_its_own_episode(memory, query, ran):
    async def one(number: int) -> None:
        heeded = function_agent(MISTAKE, heeding, "Ann does.", tools=memory.guarded([query]), pause=0.01)
        await heeded.run(f"who works in city {number}?", memory=with_block(memory))

    await asyncio.gather(*(one(number) for number in range(6)))
    memory.sync()
    found = [rows_of(memory).checks(one.id) for one in itertools.islice(memory.episodes.all(newest_first=True), 6)]
    assert [len(one) for one in found] == [1] * 6
    warned = sum(one.warned for (one,) in found)  # chance lets one of ten episodes be without a warning
    assert warned >= 4
    assert sorted(ran) == sorted([RIGHT] * warned + [WRONG] * (6 - warned))
