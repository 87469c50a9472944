"""Lets a few threads in at a time: first those whose waiting time ends first, and otherwise in the order in which they came.

A semaphore of Python lets in whichever thread asks at the right moment: among a hundred threads, some wait until they give up.
And a recall, which has a deadline, would wait behind all rewards, which have time.
"""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import AbstractContextManager

from cascade_memory.ledger.postgres.blocks import Held, Sign, block_of

_LETS_PASS = 2.0  # seconds for which whoever can wait longer lets others pass that come later


class Turns:
    """Lets in at most ``most`` threads at a time; being let in is called a turn.

    >>> room = Turns(1)
    >>> with room.entered(0.0) as first, room.entered(0.0) as second:
    ...     first, second
    (True, False)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()  # held for microseconds
        self._inside: set[_Turn] = set()
        self._waiting: set[_Turn] = set()
        self._count = itertools.count()

    @property
    def waiting(self) -> int:
        """How many threads wait now."""
        return len(self._waiting)

    def entered(self, seconds: float) -> AbstractContextManager[bool]:
        """Return a block that waits at most ``seconds`` for a turn, and yields whether the turn came.

        The end of the block lets another thread in.
        """
        return block_of(_Turn(self, max(0.0, seconds)))

    def enter(self, one: _Turn, seconds: float) -> bool:
        """Wait at most ``seconds`` for the turn ``one``; return whether it came."""
        with self._lock:
            one.order = (time.monotonic() + min(seconds, _LETS_PASS), next(self._count))
            self._waiting.add(one)
            self._let_in()
        if one.comes.acquire(timeout=seconds):
            return True
        with self._lock:
            self._waiting.discard(one)
            return one in self._inside  # the turn may have come at the last moment

    def leave(self, one: _Turn) -> None:
        """End the turn ``one``, and let another thread in; ending a turn twice does no harm."""
        with self._lock:
            self._waiting.discard(one)
            self._inside.discard(one)
            self._let_in()

    # Whoever lets others in may be interrupted after each step. Then ``leave`` is called again, and goes on from there.

    def _let_in(self) -> None:
        for one in self._inside & self._waiting:
            self._tell(one)
        while self._waiting and len(self._inside) < self._most:
            one = min(self._waiting, key=_order)
            self._inside.add(one)
            self._tell(one)

    def _tell(self, one: _Turn) -> None:
        if one.comes.locked():
            one.comes.release()
        self._waiting.discard(one)


class _Turn(Held[bool]):
    """One thread's turn to be let in by ``Turns``; the thread waits until it comes."""

    def __init__(self, room: Turns, seconds: float) -> None:
        self._room, self._seconds = room, seconds
        self.order: tuple[float, int] = (0.0, 0)
        self.comes = threading.Lock()  # released when it comes
        self.comes.acquire()

    def take(self, block: Sign) -> bool:
        del block
        return self._room.enter(self, self._seconds)

    def end(self) -> None:
        self._room.leave(self)


def _order(one: _Turn) -> tuple[float, int]:
    return one.order
