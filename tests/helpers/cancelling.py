"""Cancels a run: at its n-th suspension, in whichever of its tasks that is, or at a moment of the recall in its thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Literal

from inside import engine_of
from intensity import times

from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.engine.recording import Recording

Moment = Literal["embedding", "writing", "written"]
EVERY = times(newcomer=16, ci=8, matrix=1)  # of the suspensions of a run, every so many is tried
MOMENTS: tuple[Moment, ...] = ("embedding", "writing", "written")
_PATIENCE = 20.0  # seconds


class Driven(Coroutine[Any, Any, Any]):
    """A coroutine of which every suspension is told."""

    def __init__(self, inner: Any, suspended: Callable[[], None]) -> None:
        self._inner, self._suspended = inner, suspended

    def __await__(self) -> Any:
        return self

    def send(self, value: Any) -> Any:
        found = self._inner.send(value)
        self._suspended()
        return found

    def throw(self, *error: Any) -> Any:
        found = self._inner.throw(*error)
        self._suspended()
        return found

    def close(self) -> None:
        self._inner.close()


async def cancelled_at(nth: int, work: Callable[[], Awaitable[Any]]) -> bool:
    """Run some work, and cancel it at the n-th suspension of its tasks; return whether it was cancelled."""
    loop, seen = asyncio.get_running_loop(), 0

    def suspended() -> None:
        nonlocal seen
        seen += 1
        if seen == nth:
            main.cancel()

    def factory(loop: asyncio.AbstractEventLoop, inner: Any, **options: Any) -> Any:
        return asyncio.Task(Driven(inner, suspended), loop=loop, **options)

    async def whole() -> Any:
        return await work()

    before = loop.get_task_factory()
    loop.set_task_factory(factory)
    try:
        main = loop.create_task(whole())
        return await _was_cancelled(main)
    finally:
        loop.set_task_factory(before)


async def _was_cancelled(task: asyncio.Task[Any]) -> bool:
    try:
        await asyncio.wait_for(asyncio.shield(task), _PATIENCE)
    except asyncio.CancelledError:
        assert task.cancelled()
        return True
    return False


class Cancelling:
    """Cancels the task of a recall at a moment of that recall; the recall goes on when the task has seen it."""

    def __init__(self, memory: Any, moment: Moment) -> None:
        self.moment, self.times = moment, 0
        self._task: asyncio.Task[Any] | None = None
        self._seen = threading.Event()
        self._engine = engine_of(memory)

    async def run(self, work: Callable[[], Awaitable[Any]]) -> bool:
        """Run some work, and cancel it at the moment; return whether it was cancelled."""

        async def whole() -> Any:
            try:
                return await work()
            finally:
                self._seen.set()

        self._seen.clear()
        with self._hooked():
            self._task = asyncio.get_running_loop().create_task(whole())
            return await _was_cancelled(self._task)

    def _now(self, moment: Moment) -> None:
        task, self._task = (self._task, None) if moment == self.moment else (None, self._task)
        if task is not None:
            self.times += 1
            task.get_loop().call_soon_threadsafe(task.cancel)
            assert self._seen.wait(_PATIENCE)

    @contextlib.contextmanager
    def _hooked(self) -> Generator[None, None, None]:
        embedder, ledger = self._engine.parts.embedder, self._engine.parts.ledger
        embed, record, write = embedder.embed, ledger.record, Recording.write

        def embedding(texts: Any) -> Any:
            self._now("embedding")
            return embed(texts)

        def writing(recording: Recording, *given: Any) -> Any:
            self._now("writing")
            return write(recording, *given)

        def written(*given: Any, **more: Any) -> Any:
            key = record(*given, **more)
            self._now("written")
            return key

        embedder.embed, ledger.record, Recording.write = embedding, written, writing  # type: ignore[method-assign]
        try:
            yield
        finally:
            del embedder.embed, ledger.record
            Recording.write = write  # type: ignore[method-assign]


async def nothing_open(memory: Any) -> bool:
    """Say whether no episode stays open, and no run, once the recalls that were under way have returned."""
    ends = time.monotonic() + _PATIENCE
    runs = getattr(memory, "callback", memory)

    def something() -> bool:
        return bool(memory.episodes.pending()) or bool(getattr(runs, "open_runs", 0))

    while something() and time.monotonic() < ends:
        await asyncio.sleep(0.005)
    return not something()


class Mine(HashingEmbedder):
    """Somebody's own embedder: a recall runs on a thread of its own."""
