"""For how long the running code may wait, and a flag to wait for. A recall has a deadline; a reward waits rather than fails.

The events and conditions of ``threading`` are written in Python, and an interrupt may leave the lock inside them locked. Then
the next thread that sets such an event, or waits for it, waits for ever. So nothing here uses them.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Generator
from contextvars import ContextVar

from cascade_memory.domain.interruptible import interruptible

_LOOK = 0.0005  # seconds between two looks
_until: ContextVar[float | None] = ContextVar("cascade_memory_patience", default=None)  # a time of the monotonic clock


@interruptible
def patience(seconds: float | None) -> Generator[None, None, None]:
    """Limit how long the code inside the block may wait in total; None: no limit.

    >>> with patience(0.0):
    ...     seconds_left()
    0.0
    """
    before = _until.get()
    try:
        _until.set(None if seconds is None else time.monotonic() + seconds)
        yield
    finally:
        _until.set(before)


def patience_ends() -> float | None:
    """Return the time until which the running code may wait, by the monotonic clock; None: there is no limit."""
    return _until.get()


def seconds_left() -> float | None:
    """Return for how many seconds the running code may still wait; None: there is no limit."""
    until = _until.get()
    return None if until is None else max(0.0, until - time.monotonic())


def wait_until(over: Callable[[], bool], deadline: float) -> None:
    """Wait until ``over`` returns True, or until a time of the monotonic clock, by asking again and again.

    >>> wait_until(lambda: True, 0.0)
    """
    while not over() and time.monotonic() < deadline:
        time.sleep(_LOOK)


class Flag:
    """An event that no interrupt leaves half set: one thread waits for it, and any number of threads set and clear it.

    >>> flag = Flag()
    >>> flag.wait(0.0)
    False
    >>> flag.set()
    >>> flag.wait()
    True
    """

    def __init__(self) -> None:
        self.is_set = False  # store False here to clear it
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()  # written in C, like the locks of ``with``

    def set(self) -> None:
        """Set the flag, and wake the thread that waits."""
        if not self.is_set:
            self.is_set = True
            self._woken.put(None)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the flag is set, but no longer than ``seconds``; return whether it is set."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self.is_set:
            left = None if until is None else until - time.monotonic()
            try:
                self._woken.get(timeout=left) if left is None or left > 0 else self._woken.get_nowait()
            except queue.Empty:
                break
        return self.is_set
