"""For how long the running code may wait, a flag to wait for, and who waits.

A recall has a deadline; a reward waits rather than fails.

The events and conditions of ``threading`` are written in Python, and an interrupt may leave the lock inside them locked. Then
the next thread that sets such an event, or waits for it, waits for ever. So nothing here uses them.

A caller that leaves before its recall is stored would leave behind an episode that nobody ends. So a recall knows its caller.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import TypeAlias

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


class Asker:
    """A call, a run or a block that recalls are made for. Once it has left, no recall for it opens an episode.

    Args:
        ends_named: Whether nobody else ends the episodes whose ids the asker has chosen: if the asker leaves too early, these
            episodes are closed as well.

    >>> asker = Asker()
    >>> asker.opened(lambda: print("closed"))
    >>> asker.leave(undo=True)
    closed
    >>> asker.opened(lambda: print("closed at once"))
    closed at once
    """

    __slots__ = ("_opened", "ends_named", "left")

    def __init__(self, *, ends_named: bool = False) -> None:
        self.ends_named = ends_named
        self.left = False
        self._opened: list[Callable[[], object]] = []

    def leave(self, *, undo: bool) -> None:
        """Stop waiting; with ``undo``, also close the episodes opened for this asker: nobody has learned their ids."""
        self.left = True
        while undo and self._opened:
            self._take()

    def opened(self, close: Callable[[], object]) -> None:
        """Note how to close an episode that a recall has opened; if the asker has left already, close the episode at once."""
        # Who leaves looks here after it has left, and this looks afterwards whether it has left: one sees the other.
        self._opened.append(close)
        if self.left:
            self._take()

    def _take(self) -> None:
        with contextlib.suppress(IndexError):  # the other thread has taken it
            self._opened.pop()()


Askers: TypeAlias = tuple[Asker, ...]
_askers: ContextVar[Askers] = ContextVar("cascade_memory_askers", default=())


@interruptible
def asked_by(asker: Asker) -> Generator[Asker, None, None]:
    """Set for whom the recalls inside the block are made; the asker of a block around it waits for these recalls as well."""
    before = _askers.get()
    try:
        _askers.set((*before, asker))
        yield asker
    finally:
        _askers.set(before)


def askers() -> Askers:
    """Return those who wait for what the running code does, the outermost first."""
    return _askers.get()
