"""One log, many projections: a projection applies the log's lines in order, and can be rebuilt from the ledger."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator, Sequence
from typing import Protocol

from cascade_memory.domain.patience import seconds_left
from cascade_memory.domain.records import Change
from cascade_memory.ports.ledger import Ledger

_LINES = 10_000  # of the log, read at once


class Projection(Protocol):
    """State derived from the log: that of a namespace (index, ranker and shadow), the shared head, or the mirror."""

    @property
    def seq(self) -> int:
        """The number of the last log line that was applied."""
        ...

    def apply(self, changes: Sequence[Change]) -> None:
        """Apply log lines of all namespaces, oldest first; lines up to ``seq`` were applied already."""
        ...

    def rebuild(self) -> None:
        """Build the whole state again from the ledger."""
        ...


def take_in(ledger: Ledger, projection: Projection) -> bool:
    """Let one projection apply its next lines; return whether there may be more."""
    changes = ledger.tail(projection.seq, _LINES)
    if changes:
        projection.apply(changes)
    return len(changes) == _LINES


class Follower:
    """Reads the log for the projections that every recall needs, on one thread at a time. The mirror has its own pace."""

    def __init__(self, ledger: Ledger, rereads: float = 0.0) -> None:
        self._ledger, self._rereads = ledger, rereads
        self.due = 0.0  # on the monotonic clock; until then a recall need not read what other processes wrote
        self._reading = threading.Lock()
        self._projections: list[Projection] = []
        self.seq = ledger.head()  # every projection has applied the lines up to here

    def join(self, projection: Projection) -> None:
        """Add a projection: apply the lines written while it was being built, and every line from now on."""
        with self._reading:
            while projection.seq < self.seq and take_in(self._ledger, projection):
                pass
            self._projections.append(projection)

    @contextlib.contextmanager
    def paused(self) -> Generator[None, None, None]:
        """Stop all projections from applying lines meanwhile."""
        with self._reading:
            yield

    def follow(self) -> bool:
        """Apply what any process has written since the last call; return whether there was anything."""
        left = seconds_left()
        if not self._reading.acquire(timeout=-1 if left is None else left):
            return False  # another thread applies many lines: a recall goes on with the present state
        try:
            self.due = time.monotonic() + self._rereads  # before reading: what is written during it is expected news
            changes = self._ledger.tail(self.seq, _LINES)
            news = bool(changes)
            while changes:
                self.due = 0.0  # until they are applied: if that fails, the next recall tries again
                for projection in self._projections:
                    projection.apply(changes)
                self.seq = changes[-1].seq  # only now: lines on which a projection failed are read again
                self.due = time.monotonic() + self._rereads
                changes = self._ledger.tail(self.seq, _LINES) if len(changes) == _LINES else []
        finally:
            self._reading.release()
        return news
