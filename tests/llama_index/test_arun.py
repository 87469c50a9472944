"""One run from recall to reward, without anything global."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_agents import ADDING, TASK, function_agent, only_episode, with_block
from llama_index.core.agent.workflow import FunctionAgent
from scripted_llm import ScriptedLLM

from cascade_memory import Ranking
from cascade_memory.errors import InvalidInput
from cascade_memory.llama_index import CascadeMemory


async def test_arun_shows_the_cases_and_returns_the_episode(memory):
    agent = function_agent(ADDING, "It is 5.")
    answer, episode = await memory.arun(agent, TASK)
    assert str(answer) == "It is 5."
    shown = str(agent.llm.seen[0][-1])
    assert shown.index("add the numbers: 5") < shown.index(TASK)
    assert (episode.reward, episode.recalls, episode.query) == (1.0, 1, TASK)
    assert episode.solution.steps[0].tool == "add"
    assert memory.open_runs == 0


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


async def test_arun_shows_its_own_cases_beside_another_memorys_block(memory, make):
    other = make(ranking=Ranking(abstain=False))
    other.add("what is 2 + 3?", "ask somebody else")
    agent = function_agent("5")
    await memory.arun(agent, TASK, memory=with_block(other))
    assert "add the numbers: 5" in str(agent.llm.seen[0])
    assert "ask somebody else" in str(agent.llm.seen[0])


async def test_a_verdict_that_is_awaited_runs_in_the_callers_loop(make):
    loops = []

    async def judge(_episode: Any) -> float:
        loops.append(asyncio.get_running_loop())
        return 1.0

    memory = make(reward_fn=judge)
    _, episode = await memory.arun(function_agent("5"), TASK)
    assert episode.reward == 1.0
    assert loops == [asyncio.get_running_loop()]


async def test_parallel_tool_calls_recall_once(memory):
    calls = [("recall_cases", {"query": "adding"})] * 3
    _, episode = await memory.arun(function_agent(calls, "5", tools=(memory.tool(),)), TASK)
    assert episode.recalls == 2  # for the task, and for the tool's query


@pytest.mark.parametrize(
    ("agent", "task", "says"),
    [
        ("agent", "What is 6 times 7?", "needs an agent with a method run, not str"),
        (None, 5, "needs a task as text or as a ChatMessage, not int"),
        (None, None, "needs a task as text or as a ChatMessage, not NoneType"),
    ],
)
async def test_what_is_no_agent_or_no_task_is_refused_before_an_episode_begins(agent: Any, task: Any, says: str):
    memory = CascadeMemory(embedder="hashing", learn="inline", reward_fn=lambda episode: "42" in episode.answer)
    memory.add("What is 6 times 7?", "42")
    with pytest.raises(InvalidInput, match=says):
        await memory.arun(agent or FunctionAgent(tools=[], llm=ScriptedLLM(script=["42"])), task)
    assert memory.stats().episodes == 0
