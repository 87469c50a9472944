"""A thread that goes on when its run was cancelled: what it recalls is neither written down nor taken for another run's."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest
from adding_agents import ask, assert_clean, failing, paid, watched
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from scripted import call, model

from cascade_memory.langchain import CascadeMemory, run_tree


class Thread:
    """Recalls when it is told to, on a thread of its own."""

    def __init__(self, memory: CascadeMemory) -> None:
        self.begun, self.go_on, self.over = threading.Event(), threading.Event(), threading.Event()
        self._memory = memory

    def look(self, query: str, within: Any = None, config: Any = None) -> str:
        self.begun.set()
        assert self.go_on.wait(20)
        try:
            return str((within or self._memory).invoke(query, config))
        finally:
            self.over.set()

    async def goes_on(self) -> None:
        self.go_on.set()
        assert await asyncio.to_thread(self.over.wait, 20)


async def cancelled(thread: Thread, work: Any) -> None:
    task = asyncio.create_task(work)
    assert await asyncio.to_thread(thread.begun.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("within", ["alone", "a chain"])
async def test_a_tool_that_outlives_its_run(always: CascadeMemory, within: str):
    thread = Thread(always)
    inner = RunnableLambda(lambda query: always.invoke(query)) if within == "a chain" else None

    @tool
    async def look(query: str, config: RunnableConfig) -> str:
        """Look."""
        passed_on = None if sys.version_info >= (3, 11) else config  # by hand, see docs/troubleshooting.md
        return await asyncio.to_thread(thread.look, query, inner, passed_on)

    agent = create_agent(model(call("look", query="2 + 3"), "5"), [look], checkpointer=InMemorySaver())
    config = watched(always, configurable={"thread_id": "t"})
    await cancelled(thread, agent.ainvoke(ask(), config))

    waiting, answers = asyncio.Event(), asyncio.Event()

    async def next_run(question: str) -> str:
        waiting.set()
        await answers.wait()
        return "5"

    task = asyncio.create_task(RunnableLambda(next_run).ainvoke("another", watched(always, metadata={"thread_id": "t"})))
    await waiting.wait()
    await thread.goes_on()
    answers.set()
    await task
    assert (paid(always), always.stats().open) == ([], 0)
    assert_clean(always)


async def test_a_plain_tool_that_outlives_its_run(always: CascadeMemory):
    thread = Thread(always)

    @tool
    def look(query: str) -> str:
        """Look."""
        return thread.look(query)

    agent = failing(always, call("look", query="2 + 3"), tools=[look])
    await cancelled(thread, agent.ainvoke(ask(), watched(always)))
    await thread.goes_on()
    assert (paid(always), always.stats().open, always.stats().censored) == ([], 0, 1)
    assert_clean(always)


def test_what_is_noted_of_runs_that_have_ended_is_bounded(always: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_tree, "MOST_LATE", 8)

    def fail(query: str) -> str:
        always.invoke(query)
        raise ValueError("no")

    for i in range(20):
        with pytest.raises(ValueError, match="no"):
            RunnableLambda(fail).invoke(f"{i}", watched(always))
    assert always.callback.runs.late == 8
    for i in range(20):
        RunnableLambda(lambda query: str(always.invoke(query))).invoke(f"{i}", watched(always))
    assert always.callback.runs.late == 8, "a run that ended well leaves nothing"
