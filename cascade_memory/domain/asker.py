"""Who waits for a recall. One who leaves before it is written down would leave behind an episode that nobody ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import TypeAlias

from cascade_memory.domain.interruptible import interruptible


class Asker:
    """A call, a run or a block that recalls are made for. Once it has left, no recall for it opens an episode.

    Args:
        ends_named: Nobody else ends the episodes whose ids it has chosen: they are closed as well, when it leaves too early.

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
        """Wait no longer; with ``undo``, also close the episodes that were opened: nobody has learned their ids."""
        self.left = True
        while undo and self._opened:
            self._take()

    def opened(self, close: Callable[[], object]) -> None:
        """Note how to close an episode that a recall has opened; if nobody waits for it any more, close it."""
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
    """Say for whom the recalls inside the block are made; one around it waits for them as well."""
    before = _askers.get()
    try:
        _askers.set((*before, asker))
        yield asker
    finally:
        _askers.set(before)


def askers() -> Askers:
    """Return those who wait for what the running code does, the outermost first."""
    return _askers.get()
