"""Listening to the runs of a process, and ceasing to."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_agents import ADDING, TASK, function_agent, with_block
from llama_index_instrumentation import get_dispatcher


async def test_installing_twice_is_installing_once(memory):
    before = len(get_dispatcher().span_handlers)
    assert memory.install() is memory
    memory.install()
    assert len(get_dispatcher().span_handlers) == before + 1
    memory.uninstall()
    memory.uninstall()
    assert len(get_dispatcher().span_handlers) == before
    await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(memory.tool(),)).run(TASK)
    assert len(memory.episodes.pending()) == 1


async def test_two_memories_learn_of_their_own_recalls_only(make):
    first, second = make(reward_fn=lambda _: 1.0).install(), make(reward_fn=lambda _: 0.0).install()
    await function_agent(("recall_cases", {"query": "2 + 3"}), "5", tools=(first.tool(),)).run(TASK)
    first.sync()
    assert [first.stats().rewards, second.stats().episodes] == [1, 0]


async def test_uninstalling_in_the_middle_of_a_run_leaves_nothing(memory):
    memory.install()
    running = asyncio.ensure_future(_result(function_agent(ADDING, "5", pause=0.1).run(TASK, memory=with_block(memory))))
    while not memory.open_runs:
        await asyncio.sleep(0.01)
    memory.uninstall()
    await running
    assert memory.open_runs == 0


async def _result(handler: Any) -> Any:
    return await handler
