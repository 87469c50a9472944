"""Makes blocking calls from an event loop on separate threads: a call that hangs uses no thread of the host's own executor."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from cascade_memory.engine.workers import Job, Workers

T = TypeVar("T")

_MOST = 32  # more threads would only wait for the GIL
_recalls = Workers("cascade-memory-async", _MOST)
_rewards = Workers("cascade-memory-reward", 4 * _MOST)  # separate: a user's function may be slow or hang


async def in_thread(call: Callable[[], T]) -> T:
    """Make a call on a thread and return its result; the call sees the caller's context variables."""
    return await _done(_recalls, call)


async def in_reward_thread(call: Callable[[], T]) -> T:
    """Do the same for a call that may run a reward function or a matcher; if it is slow, recalls are not delayed."""
    return await _done(_rewards, call)


async def _done(workers: Workers, call: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def _finish() -> None:
        if not over.done():  # else the waiting task was cancelled
            over.set_result(None)

    def _notify_loop() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
            loop.call_soon_threadsafe(_finish)

    job = Job(call, _notify_loop)
    workers.give(job)
    await over
    return job.result()
