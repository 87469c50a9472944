"""Calling without blocking an event loop, and without the host's own executor: what hangs here holds up nobody there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from cascade_memory.engine.workers import Job, Workers

T = TypeVar("T")

_MOST = 32  # more threads would only wait for Python's lock
_recalls = Workers("cascade-memory-async", _MOST)
_rewards = Workers("cascade-memory-reward", 4 * _MOST)  # a function of the user's may take its time, or hang: not a recall's


async def in_thread(call: Callable[[], T]) -> T:
    """Return what a call returns; it sees the caller's context variables."""
    return await _done(_recalls, call)


async def in_reward_thread(call: Callable[[], T]) -> T:
    """Return what a call returns that may run a reward function or a matcher: however long, recalls go on."""
    return await _done(_rewards, call)


async def _done(workers: Workers, call: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def _tell() -> None:
        if not over.done():  # else nobody waits any more
            over.set_result(None)

    def _told() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(_tell)

    job = Job(call, _told)
    workers.give(job)
    await over
    return job.result()
