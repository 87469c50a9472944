"""The end of a run: its status, the work that remains, and failures of the memory that the agent never sees.

The work is done at once, or on a worker thread if it would block an event loop, or if the garbage collector may have ended the
run. The garbage collector comes in the middle of anything, even of the memory's own work, whose locks this thread may hold.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar
from typing import TYPE_CHECKING

from cascade_memory.domain.interruptible import interruptible

if TYPE_CHECKING:
    from cascade_memory.memory.memory import Memory

_PATIENCE = 60.0  # seconds

# True in work on a worker. A reward_fn called there must not wait for the workers, and so for itself.
_inside: ContextVar[bool] = ContextVar("cascade_memory_in_run_end_work", default=False)


def status_of(error: BaseException | None, *stopped: type[BaseException]) -> str:
    """Return the status of a run that ended with an exception: "error", which may be judged, or "cancelled", which may not.

    ``stopped`` are the framework's own exceptions for a run that somebody stopped.

    >>> status_of(ValueError("no such tool")), status_of(KeyboardInterrupt()), status_of(asyncio.CancelledError())
    ('error', 'cancelled', 'cancelled')
    """
    if isinstance(error, (asyncio.CancelledError, GeneratorExit, *stopped)) or not isinstance(error, Exception):
        return "cancelled"
    return "error"


@interruptible
def fail_open(memory: Memory, step: str) -> Generator[None, None, None]:
    """Count an exception under the name of a step instead of raising it; see ``memory.health()``."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is: a failing memory must not break the agent
        memory.data.note_failure(step, error)


def answered(memory: Memory, episode_id: str | None, name: object) -> None:
    """Say which model has just answered in an episode, if the memory takes that; a name that is None changes nothing."""
    models = getattr(memory, "models", None)
    if models is not None and episode_id is not None and name is not None:
        models.answered(episode_id, name)


class RunEndWorker:
    """Does the work at the end of runs, and waits for it on request. ``memory.health()`` counts the failures on a worker."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.RLock()
        self._worker: ThreadPoolExecutor | None = None
        self._under_way: set[Future[None]] = set()

    def do(self, work: Callable[[], None], *, aside: bool = False) -> None:
        """Do the work on a worker thread if ``aside`` is true or if this thread runs an event loop; otherwise do it now."""
        if not (aside or _on_a_loop()):
            work()
            return
        with self._lock:
            if self._worker is None:
                self._worker = ThreadPoolExecutor(4, thread_name_prefix="cascade-memory-run-end")
            try:
                future = self._worker.submit(contextvars.copy_context().run, self._guarded, work)
            except RuntimeError:  # Python is shutting down
                self._guarded(work)
                return
            self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)

    def _guarded(self, work: Callable[[], None]) -> None:
        _inside.set(True)
        with fail_open(self._memory, "callback"):  # nobody waits for this work
            work()

    def drain(self) -> None:
        """Wait for the workers, for at most a minute; inside work on a worker, do not wait at all."""
        if not _inside.get():
            wait(list(self._under_way), timeout=_PATIENCE)


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
