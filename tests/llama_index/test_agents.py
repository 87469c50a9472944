"""Agents with the memory: what they are shown, and which run a recall belongs to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from inside import engine_of
from llama_agents import ADDING, TASK, add, function_agent, only_episode, with_block
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import InsertMethod, Memory
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from scripted_llm import ScriptedLLM

from cascade_memory import Ranking
from cascade_memory.domain.trajectory import Trajectory
from cascade_memory.errors import InvalidInput

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
    await agent.run("What is 4 + 1?", memory=kept)
    memory.sync()
    assert sorted(one.query for one in engine_of(memory).parts.ledger.episodes.listed(None)) == sorted(["What is 4 + 1?", TASK])


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
    memory = make(
        ranking=Ranking(abstain=False), reward_fn=lambda episode: float(episode.answer.endswith(episode.query[-2]))
    ).install()
    memory.add("what is 1 + 1?", "2")

    async def one(n: int) -> Any:
        return await function_agent(
            ("recall_cases", {"query": f"what is 0 + {n}?"}), f"It is {n if n < 3 else 0}", tools=(memory.tool(),), pause=0.02
        ).run(f"what is 0 + {n}?")

    await asyncio.gather(*(one(n) for n in (1, 2, 3)))
    memory.sync()
    found = {one.query: one.reward for one in engine_of(memory).parts.ledger.episodes.listed(None)}
    assert found == {"what is 0 + 1?": 1.0, "what is 0 + 2?": 1.0, "what is 0 + 3?": 0.0}


async def test_the_id_of_the_run_is_the_id_of_the_episode(make):
    memory = make().install()
    handler = function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    await handler
    memory.sync()
    assert [one.id for one in memory.episodes.pending()] == [handler.run_id]
    case_id = memory.reward(handler.run_id, 1.0)
    assert memory.engine.cases.get(case_id).solution == "5"


async def test_without_install_the_id_of_the_run_serves_as_well(make):
    memory = make()
    handler = function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    await handler
    assert [one.id for one in memory.episodes.pending()] == [handler.run_id]


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


async def test_two_namespaces_of_one_folder_in_one_agent(make, tmp_path):
    mine = make(tmp_path, reward_fn=lambda _: 1.0).install()
    theirs = make(tmp_path, namespace="theirs", reward_fn=lambda _: 1.0).install()
    shown = Memory.from_defaults(memory_blocks=[mine.block(), theirs.block(name="theirs")], insert_method=InsertMethod.USER)
    await function_agent(ADDING, "5").run(TASK, memory=shown)
    mine.sync()
    theirs.sync()
    assert [mine.stats().rewards, theirs.stats().rewards] == [1, 1]


async def test_a_block_can_show_cases_as_earlier_turns(memory):
    memory.install()
    kept = Memory.from_defaults(session_id="s", memory_blocks=[memory.block(show="turns")])
    agent = function_agent(ADDING, "It is 5.")
    await agent.run(TASK, memory=kept)
    for shown in agent.llm.seen:
        assert [(one.role.value, one.content) for one in shown[:3]] == [
            ("user", "what is 2 + 3?"),
            ("assistant", "add the numbers: 5"),
            ("user", TASK),
        ]
    assert "add the numbers" not in str(await kept.aget_all())
    solution = only_episode(memory).solution
    assert [one.action for one in solution.steps] == ['add({"a": 2, "b": 3})']
    with pytest.raises(InvalidInput, match="turns"):
        memory.block(show="chat")


@pytest.mark.parametrize(("k", "roles"), [(1, ["user"]), (2, ["user", "assistant", "user", "assistant", "user"])])
async def test_by_default_a_block_shows_one_case_as_text_and_several_as_turns(make, k, roles):
    memory = make(k=k, ranking=Ranking(abstain=False))
    for number in range(2):
        memory.add(f"what is 2 + {number}?", f"the abacus says {number + 2}")
    kept = Memory.from_defaults(memory_blocks=[memory.block()], insert_method=InsertMethod.USER)
    await kept.aput(ChatMessage(role="user", content=TASK))
    shown = await kept.aget()
    assert [one.role.value for one in shown] == roles
    assert str([one.blocks for one in shown]).count("the abacus says") == k


async def test_turns_never_come_before_a_system_message_of_the_conversation(memory):
    kept = Memory.from_defaults(session_id="s", memory_blocks=[memory.block(show="turns")])
    await kept.aput(ChatMessage(role="system", content="Be brief."))
    await kept.aput(ChatMessage(role="user", content=TASK))
    shown = await kept.aget()
    assert [one.role.value for one in shown] == ["system", "user"]
    assert "add the numbers: 5" in str(shown[0].blocks)


async def test_turns_never_come_before_rules_nor_before_a_message_of_the_model(memory):
    for role in ("system", "developer", "assistant"):
        kept = Memory.from_defaults(
            session_id=role, memory_blocks=[memory.block(show="turns")], insert_method=InsertMethod.USER
        )
        await kept.aput(ChatMessage(role=role, content="Be brief."))
        await kept.aput(ChatMessage(role="user", content=TASK))
        shown = await kept.aget()
        assert [one.role.value for one in shown] == [role, "user"]
        assert "add the numbers: 5" in str(shown[1].blocks)
