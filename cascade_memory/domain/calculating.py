"""Keeps the process from forking while one of its threads calculates with numpy.

OpenBLAS ends its worker threads when a process forks. A thread of the parent that waits for them at that moment waits forever.
OpenBLAS uses threads for large products, and with older versions of numpy for small matrices as well.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator

_PATIENCE = 1.0  # seconds for which a calculation waits while another thread is about to fork


class _Gate:
    """Counts the threads that calculate, and can be shut so that no other thread begins."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}  # thread id -> how deeply its calculations are nested
        self._shut = False

    def enter(self, thread: int) -> None:
        with self._changed:
            if self._shut and thread not in self._inside:
                self._changed.wait_for(lambda: not self._shut, timeout=_PATIENCE)
            self._inside[thread] = self._inside.get(thread, 0) + 1

    def leave(self, thread: int) -> None:
        with self._changed:
            left = self._inside.pop(thread) - 1
            if left:
                self._inside[thread] = left
            elif self._shut:
                self._changed.notify_all()

    def shut(self, deadline: float) -> None:
        me = threading.get_ident()
        with self._changed:
            self._shut = True
            self._changed.wait_for(lambda: self._inside.keys() <= {me}, timeout=max(deadline - time.monotonic(), 0.0))

    def open(self) -> None:
        with self._changed:
            self._shut = False
            self._changed.notify_all()


_gate = _Gate()


@contextlib.contextmanager
def calculating() -> Generator[None, None, None]:
    """Keep the process from forking while the block runs, or at least delay the fork until its deadline.

    >>> with calculating():
    ...     1 + 1
    2
    """
    thread, gate = threading.get_ident(), _gate
    gate.enter(thread)
    try:
        yield
    finally:
        if gate is _gate:  # False in a child process that was forked inside the block, which has a new gate
            gate.leave(thread)


def pause(deadline: float) -> None:
    """Let no new calculation begin, and wait for those that run, but not beyond ``deadline`` (of the monotonic clock)."""
    _gate.shut(deadline)


def resume() -> None:
    """Let calculations begin again."""
    _gate.open()


def start_anew() -> None:
    """Forget, in a forked child process, which threads were calculating in the parent."""
    global _gate  # noqa: PLW0603 - threads that do not exist in the child may hold its locks
    _gate = _Gate()
