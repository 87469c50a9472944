"""Who waits for a recall: a caller that leaves before its recall is stored would leave behind an episode that nobody ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import TypeAlias

from cascade_memory.domain.interruptible import interruptible


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
