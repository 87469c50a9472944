"""Lets a few threads in at a time: those first that must give up first, and else those that came first.

A semaphore of Python lets in whoever asks at the right moment: among a hundred threads, some wait until they give up. And a
recall, which has a deadline, would wait behind all rewards, which have time.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
import time
from collections.abc import Generator
from typing import TypeAlias

_LETS_PASS = 2.0  # seconds for which whoever can wait longer lets others pass that come later
_Waiting: TypeAlias = "tuple[float, int, threading.Lock]"


class Turns:
    """Room for so many threads.

    >>> room = Turns(1)
    >>> with room.entered(0.0) as first, room.entered(0.0) as second:
    ...     first, second
    (True, False)
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._lock = threading.Lock()  # held for microseconds
        self._waiting: list[_Waiting] = []  # a heap; whoever leaves releases the lock of the first one
        self._count = itertools.count()

    @property
    def waiting(self) -> int:
        """How many threads wait now."""
        return len(self._waiting)

    @contextlib.contextmanager
    def entered(self, seconds: float) -> Generator[bool, None, None]:
        """Wait for so long at most; say whether the thread is in, and let another one in at the end of the block."""
        came_in = self._enter(max(0.0, seconds))
        try:
            yield came_in
        finally:
            if came_in:
                self._leave()

    def _enter(self, seconds: float) -> bool:
        turn = threading.Lock()
        with self._lock:
            if self._free:  # then nobody waits
                self._free -= 1
                return True
            turn.acquire()
            one = (time.monotonic() + min(seconds, _LETS_PASS), next(self._count), turn)
            heapq.heappush(self._waiting, one)
        try:
            if turn.acquire(timeout=seconds):
                return True
        except BaseException:
            if not self._gave_up(one):
                self._leave()
            raise
        return not self._gave_up(one)

    def _gave_up(self, one: _Waiting) -> bool:
        """Stop waiting; return False if the turn came at the last moment."""
        with self._lock:
            if one not in self._waiting:
                return False
            self._waiting.remove(one)
            heapq.heapify(self._waiting)
            return True

    def _leave(self) -> None:
        with self._lock:
            if self._waiting:
                _, _, turn = heapq.heappop(self._waiting)
                turn.release()
            else:
                self._free += 1
