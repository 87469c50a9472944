"""One log, many projections: what is made from the log takes in its lines, and can be made again from the ledger."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Sequence
from typing import Protocol

from cascade_memory.domain.patience import seconds_left
from cascade_memory.domain.records import Change
from cascade_memory.ports.ledger import Ledger

_LINES = 10_000  # read at once


class Projection(Protocol):
    """What is made from the log: the state of a namespace (index, ranker and shadow), the shared head, the mirror."""

    @property
    def seq(self) -> int:
        """The last line that was taken in."""
        ...

    def apply(self, changes: Sequence[Change]) -> None:
        """Take in lines of the log, oldest first, of all namespaces; those up to ``seq`` are known already."""
        ...

    def rebuild(self) -> None:
        """Make all of it again from the ledger."""
        ...


def take_in(ledger: Ledger, projection: Projection) -> bool:
    """Let one projection take in the next lines; return whether there may be more."""
    changes = ledger.tail(projection.seq, _LINES)
    if changes:
        projection.apply(changes)
    return len(changes) == _LINES


class Follower:
    """Reads the log for the projections that every recall needs, one thread at a time. The mirror has a pace of its own."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._reading = threading.Lock()
        self._projections: list[Projection] = []
        self.seq = ledger.head()  # everybody has taken in the lines up to here

    def join(self, projection: Projection) -> None:
        """Tell a projection what happened while it was being made, and from here on everything."""
        with self._reading:
            while projection.seq < self.seq and take_in(self._ledger, projection):
                pass
            self._projections.append(projection)

    @contextlib.contextmanager
    def paused(self) -> Generator[None, None, None]:
        """Let nothing be taken in meanwhile."""
        with self._reading:
            yield

    def follow(self) -> bool:
        """Read what happened since the last look, by whichever process; return whether anything did."""
        left = seconds_left()
        if not self._reading.acquire(timeout=-1 if left is None else left):
            return False  # another thread takes in a great deal: a recall goes on with what is known
        try:
            changes = self._ledger.tail(self.seq, _LINES)
            news = bool(changes)
            while changes:
                for projection in self._projections:
                    projection.apply(changes)
                self.seq = changes[-1].seq  # not before: what failed on the way is looked at again
                changes = self._ledger.tail(self.seq, _LINES) if len(changes) == _LINES else []
        finally:
            self._reading.release()
        return news
