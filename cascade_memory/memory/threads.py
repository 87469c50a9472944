"""Makes blocking calls on separate threads: those from an event loop, and those that load the model before the first recall.

A call that hangs uses no thread of the host's own executor.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from cascade_memory.domain.waiting import Asker, asked_by
from cascade_memory.engine.workers import Job, Workers
from cascade_memory.ports.encoders import LoadsModel

if TYPE_CHECKING:
    from cascade_memory.engine.engine import Engine

T = TypeVar("T")
_MOST = 32  # more threads would only wait for the GIL
_recalls = Workers("cascade-memory-async", _MOST)
_rewards = Workers("cascade-memory-reward", 4 * _MOST)  # separate: a user's function may be slow or hang


async def in_thread(call: Callable[[], T], *, ends_named: bool = False) -> T:
    """Make a call on a thread and return its result; the call sees the caller's context variables.

    If the waiting task is cancelled, the call goes on, but the new episodes that its recalls open are closed. With
    ``ends_named``, the episodes whose ids the caller has passed are closed as well.
    """
    return await _done(_recalls, call, ends_named=ends_named)


async def in_reward_thread(call: Callable[[], T]) -> T:
    """Do what ``in_thread`` does, for a call that may run a reward function or a matcher. A slow one does not delay recalls."""
    return await _done(_rewards, call)


def soon_in_reward_thread(call: Callable[[], object]) -> None:
    """Start a call on a thread as ``in_reward_thread`` does, and do not wait for it."""
    _rewards.give(Job(call))


async def _done(workers: Workers, call: Callable[[], T], *, ends_named: bool = False) -> T:
    import asyncio  # slow to load; where a loop runs, it is loaded already

    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def _finish() -> None:
        if not over.done():  # else the waiting task was cancelled
            over.set_result(None)

    def _notify_loop() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
            loop.call_soon_threadsafe(_finish)

    with asked_by(Asker(ends_named=ends_named)) as asker:
        job = Job(call, _notify_loop)
    try:
        workers.give(job)
        await over
    except BaseException:
        asker.leave(undo=True)
        raise
    return job.result()


def warmed(engine: Engine, namespace: str, *, wait: bool) -> None:
    """Load the model and the namespace now; if ``wait`` is False, on a thread, and only if the embedder has a model to load."""

    def load() -> None:
        if wait and isinstance(engine.parts.embedder, LoadsModel):
            engine.parts.embedder.prepare()  # all of it: without waiting, a recall may come when the model can only just answer
        engine.load(namespace)
        engine.embed(["warm"])

    def load_meanwhile() -> None:
        try:
            load()
        except Exception as error:  # noqa: BLE001 - the first recall tries again, and says what is wrong
            if not engine.closed:
                engine.note_failure("warm", error)

    if wait:
        load()
    elif isinstance(engine.parts.embedder, LoadsModel):
        threading.Thread(target=load_meanwhile, name="cascade-memory-warm", daemon=True).start()
