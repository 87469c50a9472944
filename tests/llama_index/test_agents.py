"""Agents with the memory: every recall belongs to the run around it, and what the run's end says is learned, nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.memory import InsertMethod, Memory
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher
from scripted_llm import ScriptedLLM
from workflows.errors import WorkflowCancelledByUser, WorkflowRuntimeError, WorkflowTimeoutError

from cascade_memory.domain.trajectory import Trajectory

TASK = "what is 2 + 3, please?"
ADDING = ("add", {"a": 2, "b": 3})


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def function_agent(*script: Any, tools: Any = (add,), **options: Any) -> FunctionAgent:
    llm_options = {key: options.pop(key) for key in ("pause",) if key in options}
    return FunctionAgent(llm=ScriptedLLM(script=list(script), **llm_options), tools=list(tools), **options)


def with_block(memory: Any, how: InsertMethod = InsertMethod.USER) -> Memory:
    return Memory.from_defaults(session_id="s", memory_blocks=[memory.block()], insert_method=how)


def only_episode(memory: Any) -> Any:
    memory.sync()
    (episode,) = memory.engine._engine.parts.ledger.episodes(None)
    return episode


# -- the block and the tool ------------------------------------------------------------------------------------------


async def test_a_block_shows_cases_at_every_step_and_recalls_once(memory):
    memory.install()
    agent = function_agent(ADDING, "It is 5.")
    await agent.run(TASK, memory=with_block(memory))
    for shown in agent.llm.seen:
        assert "add the numbers: 5" in str(shown[-1 if len(shown) == 1 else 0])
    episode = only_episode(memory)
    assert (episode.recalls, episode.reward, episode.query) == (1, 1.0, TASK)


async def test_the_case_that_is_kept_has_the_tool_calls_and_the_answer(memory):
    memory.install()
    await function_agent(ADDING, "It is 5.").run(TASK, memory=with_block(memory))
    solution = only_episode(memory).solution
    assert isinstance(solution, Trajectory)
    assert [(one.action, one.observation, one.failed) for one in solution.steps] == [('add({"a": 2, "b": 3})', "5", False)]
    assert solution.answer == "It is 5."


async def test_cases_are_never_part_of_the_conversation(memory):
    memory.install()
    kept = with_block(memory)
    agent = function_agent(ADDING, "It is 5.")
    await agent.run(TASK, memory=kept)
    history = await kept.aget_all()
    assert "add the numbers" not in str(history)
    await agent.run("and 4 + 1?", memory=kept)
    memory.sync()
    assert sorted(one.query for one in memory.engine._engine.parts.ledger.episodes(None)) == ["and 4 + 1?", TASK]


async def test_a_block_can_be_shown_in_the_system_prompt(memory):
    agent = function_agent("5", system_prompt="Be brief.")
    await agent.run(TASK, memory=with_block(memory, InsertMethod.SYSTEM))
    assert "add the numbers: 5" in " ".join(str(one.content) for one in agent.llm.seen[0] if one.role.value == "system")


async def test_an_agent_that_asks_gets_the_query_as_it_said_it(memory):
    memory.install()
    await function_agent(("recall_cases", {"query": "2 + 3"}), ADDING, "It is 5.", tools=(memory.tool(), add)).run(TASK)
    episode = only_episode(memory)
    assert episode.query == "2 + 3"
    assert [one.tool for one in episode.solution.steps] == ["add"], "recalled cases are no experience"


async def test_a_tool_under_another_name_is_left_out_as_well(make):
    memory = make(reward_fn=lambda episode: 1.0).install()
    tool = memory.tool("look_up", "Look it up.")
    await function_agent(("look_up", {"query": "2 + 3"}), ADDING, "5", tools=(tool, add)).run(TASK)
    assert [one.tool for one in only_episode(memory).solution.steps] == ["add"], "with nothing found, too"


async def test_llama_indexs_own_retriever_tool_works_and_is_no_experience(memory):
    memory.install()
    tool = RetrieverTool.from_defaults(memory, name="cases", description="Solved cases.")
    await function_agent(("cases", {"input": "2 + 3"}), ADDING, "It is 5.", tools=(tool, add)).run(TASK)
    assert [one.tool for one in only_episode(memory).solution.steps] == ["add"]


async def test_a_react_agent(memory):
    memory.install()
    script = ['Thought: I add.\nAction: add\nAction Input: {"a": 2, "b": 3}', "Thought: I can answer.\nAnswer: It is 5."]
    agent = ReActAgent(llm=ScriptedLLM(script=script, calls_tools=False), tools=[add])
    await agent.run(TASK, memory=with_block(memory))
    assert "add the numbers: 5" in str(agent.llm.seen[0])
    episode = only_episode(memory)
    assert (episode.reward, episode.recalls, episode.answer) == (1.0, 1, "It is 5.")
    assert [one.action for one in episode.solution.steps] == ['add({"a": 2, "b": 3})']


async def test_agents_that_hand_off_are_one_run(memory):
    memory.install()
    first = function_agent(
        ("handoff", {"to_agent": "second", "reason": "it adds"}),
        name="first",
        description="plans",
        tools=(),
        can_handoff_to=["second"],
    )
    second = FunctionAgent(llm=ScriptedLLM(script=[ADDING, ADDING, "It is 5."]), tools=[add], name="second", description="adds")
    await AgentWorkflow(agents=[first, second], root_agent="first").run(TASK, memory=with_block(memory))
    episode = only_episode(memory)
    assert (episode.reward, episode.recalls) == (1.0, 1)
    assert "add" in [one.tool for one in episode.solution.steps]


# -- which run -------------------------------------------------------------------------------------------------------


async def test_three_runs_at_once_keep_their_own_episodes(make):
    memory = make(abstain=False, reward_fn=lambda episode: float(episode.answer.endswith(episode.query[-2]))).install()
    memory.add("what is 1 + 1?", "2")

    async def one(n: int) -> Any:
        return await function_agent(
            ("recall_cases", {"query": f"what is 0 + {n}?"}), f"It is {n if n < 3 else 0}", tools=(memory.tool(),), pause=0.02
        ).run(f"what is 0 + {n}?")

    await asyncio.gather(*(one(n) for n in (1, 2, 3)))
    memory.sync()
    found = {one.query: one.reward for one in memory.engine._engine.parts.ledger.episodes(None)}
    assert found == {"what is 0 + 1?": 1.0, "what is 0 + 2?": 1.0, "what is 0 + 3?": 0.0}


async def test_the_id_of_the_run_is_the_id_of_the_episode(make):
    memory = make().install()
    handler = function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    await handler
    memory.sync()
    assert [one.id for one in memory.pending()] == [handler.run_id]
    case_id = memory.reward(handler.run_id, 1.0)
    assert memory.engine.get(case_id).solution == "5"


async def test_without_install_the_id_of_the_run_serves_as_well(make):
    memory = make()
    handler = function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    await handler
    assert [one.id for one in memory.pending()] == [handler.run_id]


async def test_an_agent_inside_a_tool_recalls_for_the_outermost_run(memory):
    memory.install()
    inner = function_agent(("recall_cases", {"query": "2 + 3"}), "inner says 5", tools=(memory.tool(),))

    async def ask(question: str) -> str:
        """Ask a colleague."""
        return str(await inner.run(question))

    handler = function_agent(
        ("ask", {"question": "2 + 3?"}), "It is 5.", tools=(FunctionTool.from_defaults(async_fn=ask),)
    ).run(TASK)
    await handler
    episode = only_episode(memory)
    assert (episode.id, episode.answer, episode.reward) == (handler.run_id, "It is 5.", 1.0)


async def test_a_workflow_of_ones_own_is_a_run(memory):
    class Ask(Workflow):
        @step
        async def go(self, event: StartEvent) -> StopEvent:
            found = await memory.aretrieve(event.task)
            return StopEvent(result={"answer": found[0].get_content()[-1]})

    memory.install()
    await Ask().run(task=TASK)
    assert only_episode(memory).solution == "5"


async def test_a_recall_in_a_thread_of_the_tool_belongs_to_the_run(memory):
    memory.install()

    async def look(query: str) -> str:
        """Look."""
        return (await asyncio.to_thread(memory.retrieve, query))[0].get_content()

    await function_agent(("look", {"query": "2 + 3"}), "5", tools=(FunctionTool.from_defaults(async_fn=look),)).run(TASK)
    assert only_episode(memory).reward == 1.0


# -- how it ends -----------------------------------------------------------------------------------------------------


async def test_an_error_is_the_agents_own_and_says_nothing_of_the_case(memory):
    memory.install()
    asked = ("recall_cases", {"query": "2 + 3"})
    with pytest.raises(Exception, match="no model"):
        await function_agent(asked, RuntimeError("no model"), tools=(memory.tool(),)).run(TASK)
    assert (only_episode(memory).status, memory.engine.rewards()) == ("censored", [])


async def test_an_error_may_be_judged(make):
    memory = make(reward_fn=lambda episode: 0.0 if episode.status == "error" else 1.0).install()
    asked = ("recall_cases", {"query": "2 + 3"})
    with pytest.raises(Exception, match="no model"):
        await function_agent(asked, RuntimeError("no model"), tools=(memory.tool(),)).run(TASK)
    assert only_episode(memory).reward == 0.0


async def test_running_out_of_time_is_an_error(memory):
    memory.install()
    agent = function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),), pause=0.3, timeout=0.45)
    with pytest.raises(WorkflowTimeoutError):
        await agent.run(TASK)
    assert (only_episode(memory).status, memory.engine.rewards()) == ("censored", [])


async def test_running_out_of_steps_is_an_error(memory):
    memory.install()
    agent = function_agent(("recall_cases", {"query": "2 + 3"}), ADDING, ADDING, ADDING, tools=(memory.tool(), add))
    with pytest.raises(WorkflowRuntimeError, match="Max iterations"):
        await agent.run(TASK, max_iterations=3)
    assert (only_episode(memory).status, memory.engine.rewards()) == ("censored", [])


async def test_a_cancelled_run_is_censored_even_if_errors_are_judged(make):
    memory = make(reward_fn=lambda episode: 0.0).install()
    agent = function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),), pause=0.1)
    handler = agent.run(TASK)
    while not memory.pending():
        await asyncio.sleep(0.02)
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await handler
    assert (only_episode(memory).status, memory.engine.rewards()) == ("censored", [])


async def test_a_failing_tool_is_a_failed_step_of_a_run_that_went_on(memory):
    def divide(a: int, b: int) -> float:
        """Divide."""
        return a / b

    memory.install()
    script = (("recall_cases", {"query": "2 + 3"}), ("divide", {"a": 1, "b": 0}), ADDING, "It is 5.")
    await function_agent(*script, tools=(memory.tool(), divide, add)).run(TASK)
    steps = only_episode(memory).solution.steps
    assert [(one.tool, one.failed) for one in steps] == [("divide", True), ("add", False)]


async def test_a_run_that_waits_for_somebody_goes_on_with_its_episode(memory):
    async def confirm(ctx: Context, query: str) -> str:
        """Ask a person whether to go on."""
        await memory.aretrieve(query)
        answer = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="Sure?"))
        return answer.response

    memory.install()
    confirm.__annotations__["ctx"] = Context  # as it is where annotations are not postponed: LlamaIndex does not resolve them
    tool = FunctionTool.from_defaults(async_fn=confirm)
    handler = function_agent(("confirm", {"query": "2 + 3"}), "It is 5.", tools=(tool,)).run(TASK)
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            assert memory.pending()
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    await handler
    episode = only_episode(memory)
    assert (episode.reward, episode.recalls) == (1.0, 1), "the tool ran twice, and recalled once"


async def test_without_a_verdict_the_episode_keeps_its_solution_for_a_later_reward(make):
    memory = make().install()
    await function_agent(("recall_cases", {"query": "2 + 3"}), ADDING, "5", tools=(memory.tool(), add)).run(TASK)
    (episode,) = memory.pending()
    assert (episode.ended, episode.answer) == ("ok", "5")
    assert memory.reward(episode.id, 1.0) is not None


async def test_runs_that_recall_nothing_leave_nothing(memory):
    memory.install()
    await function_agent(ADDING, "5").run(TASK)
    memory.sync()
    assert memory.stats().episodes == 0
    assert memory.open_runs == 0
    assert not memory._runs._by_span


async def test_a_memory_that_fails_does_not_stop_the_agent(memory, monkeypatch):
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("disk on fire")

    memory.install()
    monkeypatch.setattr(memory.engine._engine.parts.ledger, "record", broken)
    with pytest.warns(RuntimeWarning, match="disk on fire"):
        answer = await function_agent(ADDING, "It is 5.").run(TASK, memory=with_block(memory))
    assert str(answer) == "It is 5."
    assert memory.health().failures["recall"] == 1


async def test_a_verdict_that_fails_is_counted(make):
    memory = make(reward_fn=lambda episode: 1 / 0).install()
    answer = await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    memory.sync()
    assert str(answer) == "5"
    assert memory.health().failures
    assert memory.pending()[0].answer == "5"


async def test_a_slow_verdict_does_not_hold_up_the_loop(make):
    import time

    memory = make(reward_fn=lambda episode: time.sleep(0.3) or 1.0).install()
    began = time.perf_counter()
    await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    assert time.perf_counter() - began < 0.3
    assert only_episode(memory).reward == 1.0


# -- install and uninstall -------------------------------------------------------------------------------------------


async def test_installing_twice_is_installing_once(memory):
    before = len(get_dispatcher().span_handlers)
    assert memory.install() is memory
    memory.install()
    assert len(get_dispatcher().span_handlers) == before + 1
    memory.uninstall()
    memory.uninstall()
    assert len(get_dispatcher().span_handlers) == before
    await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    assert len(memory.pending()) == 1


async def test_two_memories_learn_of_their_own_recalls_only(make):
    first, second = make(reward_fn=lambda _: 1.0).install(), make(reward_fn=lambda _: 0.0).install()
    await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(first.tool(),)).run(TASK)
    first.sync()
    assert [first.stats().rewards, second.stats().episodes] == [1, 0]


# -- arun ------------------------------------------------------------------------------------------------------------


async def test_arun_shows_the_cases_and_returns_the_episode(memory):
    agent = function_agent(ADDING, "It is 5.")
    answer, episode = await memory.arun(agent, TASK)
    assert str(answer) == "It is 5."
    shown = str(agent.llm.seen[0][-1])
    assert shown.index("add the numbers: 5") < shown.index(TASK)
    assert (episode.reward, episode.recalls, episode.query) == (1.0, 1, TASK)
    assert episode.solution.steps[0].tool == "add"
    assert len(memory._runs) == 0


async def test_arun_leaves_it_to_the_block_where_there_is_one(memory):
    agent = function_agent("5")
    _, episode = await memory.arun(agent, TASK, memory=with_block(memory))
    assert str(agent.llm.seen[0]).count("add the numbers: 5") == 1
    assert episode.recalls == 1


async def test_arun_under_an_installed_memory_is_one_episode(memory):
    memory.install()
    _, episode = await memory.arun(function_agent(("recall_cases", {"query": "adding"}), "5", tools=(memory.tool(),)), TASK)
    assert only_episode(memory).id == episode.id
    assert episode.recalls == 2


async def test_arun_passes_errors_on_and_censors(memory):
    with pytest.raises(Exception, match="no model"):
        await memory.arun(function_agent(RuntimeError("no model")), TASK)
    assert only_episode(memory).status == "censored"


async def test_arun_that_is_cancelled_cancels_the_agent(memory):
    agent = function_agent(ADDING, ADDING, "5", pause=0.2)
    running = asyncio.create_task(memory.arun(agent, TASK))
    while not agent.llm.seen:
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)  # the second call is under way
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    calls = len(agent.llm.seen)
    await asyncio.sleep(0.5)
    assert len(agent.llm.seen) == calls
    assert only_episode(memory).status == "censored"


async def test_arun_goes_on_when_the_memory_fails(make):
    def broken(cases: Any) -> str:
        raise ValueError("template")

    memory = make(template=broken, reward_fn=lambda episode: 1.0)
    memory.add("what is 2 + 3?", "5")
    answer, episode = await memory.arun(function_agent("5"), TASK)
    assert (str(answer), episode.reward) == ("5", 1.0)
    assert memory.health().failures["recall"] == 1
    answer, _ = await memory.arun(function_agent("5"), TASK * 10_000)
    assert str(answer) == "5"


async def test_a_solution_that_cannot_be_told_is_not_a_failure(memory, monkeypatch):
    def broken(*_: Any) -> Any:
        raise ValueError("unreadable")

    monkeypatch.setattr("cascade_memory.llama_index.instrumentation.solution_in", broken)
    memory.install()
    await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    await memory.arun(function_agent("5"), TASK)
    memory.sync()
    assert [one.ended for one in memory.pending()] == ["ok", "ok"]
    assert memory.health().failures["callback"] == 2


async def test_two_namespaces_of_one_folder_in_one_agent(make, tmp_path):
    mine = make(tmp_path, reward_fn=lambda _: 1.0).install()
    theirs = make(tmp_path, namespace="theirs", reward_fn=lambda _: 1.0).install()
    shown = Memory.from_defaults(memory_blocks=[mine.block(), theirs.block(name="theirs")], insert_method=InsertMethod.USER)
    await function_agent(ADDING, "5").run(TASK, memory=shown)
    mine.sync()
    theirs.sync()
    assert [mine.stats().rewards, theirs.stats().rewards] == [1, 1]


async def test_a_recall_after_the_reward_is_an_episode_that_ends_as_well(memory):
    async def look(query: str) -> str:
        """Look."""
        for text in (query, query + "!"):
            node = (await memory.aretrieve(text))[0]
            if text == query:
                memory.reward(node.metadata["cascade_episode_id"], 1.0)
        return "looked"

    memory.install()
    await function_agent(("look", {"query": "2 + 3"}), "5", tools=(FunctionTool.from_defaults(async_fn=look),)).run(TASK)
    memory.sync()
    assert (memory.stats().rewards, memory.stats().open) == (2, 0)


async def test_uninstalling_in_the_middle_of_a_run_leaves_nothing(memory):
    memory.install()
    running = asyncio.ensure_future(_result(function_agent(ADDING, "5", pause=0.1).run(TASK, memory=with_block(memory))))
    while not memory.open_runs:
        await asyncio.sleep(0.01)
    memory.uninstall()
    await running
    assert not memory._runs._by_span


async def _result(handler: Any) -> Any:
    return await handler
