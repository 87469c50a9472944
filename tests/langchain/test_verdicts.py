"""A reward function may use the memory, say nothing useful, or be slow: the agent does not suffer from it."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from adding_agents import ask, paid
from held_up import block_leaves_the_loop_free
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig, RunnableLambda
from scripted import model

from cascade_memory import Episode
from cascade_memory.errors import InvalidInput
from cascade_memory.langchain import CascadeMemory
from cascade_memory.runs.ending import RunEndWorker

Make = Callable[..., CascadeMemory]


@pytest.mark.parametrize("kind", ["async", "areward", "thread"])
async def test_a_reward_function_may_use_the_memory(make: Make, kind: str):
    async def asks(_: Episode) -> float:
        memory.stats()
        return 1.0

    async def rewards_another(_: Episode) -> float:
        await memory.areward(other, 1.0)
        return 1.0

    def in_a_thread(_: Episode) -> float:
        context = __import__("contextvars").copy_context()
        thread = threading.Thread(target=context.run, args=(memory.stats,))
        thread.start()
        thread.join()
        return 1.0

    functions: dict[str, Any] = {"async": asks, "areward": rewards_another, "thread": in_a_thread}
    memory = make(reward_fn=functions[kind])
    other = memory.engine.recall("other").episode_id

    def recalled(q: str, config: RunnableConfig) -> str:
        memory.invoke(q, config)
        return "done"

    chain = RunnableLambda(recalled)
    await chain.ainvoke("heat", {"callbacks": [memory.callback]})
    await asyncio.wait_for(asyncio.to_thread(memory.sync), 10)
    assert 1.0 in paid(memory)


@pytest.mark.parametrize("verdict", [1.5, "yes", float("nan")])
def test_a_verdict_that_is_none_leaves_the_episode_pending_with_its_solution(make: Make, verdict: Any):
    memory = make(reward_fn=lambda _: verdict)
    create_agent(model("It is 42."), [], middleware=[memory.middleware()]).invoke(ask("6 * 7"))
    assert [episode.answer for episode in memory.episodes.pending()] == ["It is 42."]


def test_what_a_judge_runs_does_not_appear_in_the_agents_stream(make: Make):
    judge = model("VERDICT TEXT")
    memory = make(reward_fn=lambda _: float(bool(judge.invoke("?"))))
    agent = create_agent(model("It is 42."), [], middleware=[memory.middleware()])
    said = [chunk.text for chunk, _ in agent.stream(ask("6 * 7"), stream_mode="messages")]
    assert "VERDICT TEXT" not in said
    assert paid(memory) == [1.0]


async def test_an_asynchronous_block_does_not_hold_up_the_loop(make: Make):
    loop_thread = threading.get_ident()
    judged_on: list[int] = []

    def judge(_: Episode) -> float:
        judged_on.append(threading.get_ident())
        return 1.0

    memory = make(reward_fn=judge)
    async with memory.episode("6 * 7") as block:
        block.solution = "42"
    async with memory.engine.episode("6 * 8") as session:
        session.solution = "48"
    assert paid(memory) == [1.0, 1.0]
    assert loop_thread not in judged_on


async def test_nor_does_its_recall(make: Make):
    assert await block_leaves_the_loop_free(make)


def test_a_graph_refuses_a_reward_that_it_could_not_await(always: CascadeMemory):
    async def judge(_: Any) -> float:
        return 1.0

    with pytest.raises(InvalidInput, match="plain function"):
        always.learn_node(reward=judge)  # type: ignore[arg-type]


def test_work_that_is_done_is_not_kept(make: Make):
    def waiting() -> int:
        gc.collect()
        return sum(type(one) is Future for one in gc.get_objects())

    worker, before = RunEndWorker(make()), waiting()
    for _ in range(50):
        worker.do(lambda: None, aside=True)
    worker.drain()
    assert waiting() < before + 10
