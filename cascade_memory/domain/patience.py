"""How long the running code may wait for a lock: a recall has a deadline, while a reward waits rather than fails."""

from __future__ import annotations

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

    No condition of ``threading`` is used: it is written in Python, and an interrupt may leave its lock held.

    >>> wait_until(lambda: True, 0.0)
    """
    while not over() and time.monotonic() < deadline:
        time.sleep(_LOOK)
