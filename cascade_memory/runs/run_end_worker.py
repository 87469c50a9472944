"""What is left to do when a run has ended: at once, or on a worker where an event loop must not be held up."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar
from typing import TYPE_CHECKING

from cascade_memory.runs.failing_open import fail_open

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory

_PATIENCE = 60.0  # seconds

_inside: ContextVar[bool] = ContextVar("cascade_memory_aftermath", default=False)  # what a reward_fn calls must not wait for it


class RunEndWorker:
    """Does such work, and waits for it when asked. What fails on a worker is counted in ``memory.health()``."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._worker: ThreadPoolExecutor | None = None
        self._under_way: set[Future[None]] = set()

    def do(self, work: Callable[[], None], *, at_once: bool = False) -> None:
        """Do this now, unless this thread drives an event loop and it need not be ``at_once``."""
        if at_once or not _on_a_loop():
            work()
            return
        with self._lock:
            if self._worker is None:
                self._worker = ThreadPoolExecutor(4, thread_name_prefix="cascade-memory-aftermath")
            future = self._worker.submit(contextvars.copy_context().run, self._guarded, work)
            self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)

    def _guarded(self, work: Callable[[], None]) -> None:
        _inside.set(True)
        with fail_open(self._memory, "callback"):  # nobody waits for this
            work()

    def drain(self) -> None:
        """Wait for the workers, but for no longer than a verdict may reasonably take; not at all from within a verdict."""
        if not _inside.get():
            wait(list(self._under_way), timeout=_PATIENCE)


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
