"""A run that raises, is cancelled or thrown away: its episode is censored, unless a judge says otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from adding_agents import adding, ask, assert_clean, explode, failing, paid, watched
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.errors import GraphRecursionError
from scripted import call, model

from cascade_memory import Episode
from cascade_memory.langchain import CascadeMemory
from cascade_memory.memory.episodes import Episodes

Make = Callable[..., CascadeMemory]


def test_a_tool_that_raises_reaches_the_caller_and_the_episode_is_censored(judged: CascadeMemory):
    with pytest.raises(RuntimeError, match="the tool exploded"):
        failing(judged, call("explode"), tools=[explode]).invoke(ask(), watched(judged))
    assert paid(judged) == []
    assert judged.stats().censored == 1
    assert_clean(judged)


def test_the_reward_function_sees_that_a_run_failed_and_may_judge(make: Make):
    seen: list[Episode] = []

    def judge(episode: Episode) -> float | None:
        seen.append(episode)
        return 0.0 if episode.status == "error" else None

    memory = make(reward_fn=judge)
    with pytest.raises(ValueError, match="no model"):
        failing(memory, ValueError("no model")).invoke(ask(), watched(memory))
    assert [episode.status for episode in seen] == ["error"]
    assert paid(memory) == [0.0]


def test_a_runaway_agent_is_an_error(judged: CascadeMemory):
    agent = create_agent(model(call("recall_cases", query="2 + 3")), [judged.tool()])
    with pytest.raises(GraphRecursionError):
        agent.invoke(ask(), watched(judged, recursion_limit=6))
    assert judged.stats().censored == 1
    assert_clean(judged)


@pytest.fixture
def harsh(make: Make) -> CascadeMemory:
    """Judges everything that it is asked about as a failure."""
    return make(reward_fn=lambda _: 0.0)


def test_a_stream_thrown_away_is_censored_not_counted_as_failure(harsh: CascadeMemory):
    judged = harsh
    stream = adding(judged).stream(ask(), watched(judged), stream_mode="updates")
    for update in stream:
        if "tools" in update:
            break
    stream.close()
    assert paid(judged) == []
    assert judged.stats().censored == 1
    assert_clean(judged)


async def test_a_cancelled_run_is_censored(harsh: CascadeMemory):
    judged = harsh
    waiting = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait forever."""
        waiting.set()
        await asyncio.sleep(60)
        return "never"

    agent = failing(judged, call("wait"), tools=[wait])
    task = asyncio.create_task(agent.ainvoke(ask(), watched(judged)))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert paid(judged) == []
    assert judged.stats().censored == 1
    assert_clean(judged)


def test_an_error_of_the_memory_never_reaches_the_agent(judged: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Episodes, "conclude", broken)
    result = adding(judged).invoke(ask(), watched(judged))
    assert result["messages"][-1].text == "It is 5."
    assert judged.health().failures == {"callback": 1}


def test_a_reward_function_that_raises_is_counted_and_the_episode_stays_pending(make: Make):
    def judge(_: Episode) -> float:
        raise KeyError("gold")

    memory = make(reward_fn=judge)
    adding(memory).invoke(ask(), watched(memory))
    assert len(memory.episodes.pending()) == 1
    assert memory.episodes.pending()[0].answer == "It is 5."
    assert memory.health().failures == {"reward_fn": 1}


def test_a_tool_that_failed_is_a_failed_step_and_what_it_shouted_is_cleaned(make: Make):
    seen: list[Episode] = []
    memory = make(reward_fn=lambda episode: seen.append(episode))

    @tool
    def shout() -> str:
        """Fail loudly."""
        raise RuntimeError("\x1b[31mno\x00 way")

    def chain(question: str) -> str:
        memory.invoke(question)
        try:
            shout.invoke({})
        except RuntimeError:
            return "gave up"
        return "fine"

    RunnableLambda(chain).invoke("q", watched(memory))
    (step,) = seen[0].solution.steps
    assert (step.tool, step.observation, step.failed) == ("shout", "RuntimeError: no way", True)
    assert_clean(memory)
