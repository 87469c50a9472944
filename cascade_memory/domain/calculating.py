"""Keeps the process from forking while one of its threads calculates with numpy.

OpenBLAS ends its worker threads when a process forks. A thread of the parent that waits for them at that moment waits forever.
OpenBLAS uses threads for large products, and with older versions of numpy for small matrices as well.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.patience import wait_until

_PATIENCE = 1.0  # seconds for which a calculation waits while another thread is about to fork


class _Gate:
    """Counts the threads that calculate, and can be shut so that no other thread begins.

    Each thread changes its own count alone, in one step, without a lock: an interrupt leaves no count wrong.
    """

    def __init__(self) -> None:
        self.inside: dict[int, int] = {}  # thread id -> how deeply its calculations are nested
        self._shut = False

    def wait(self, thread: int) -> None:
        """Wait while the gate is shut, unless this thread is inside already."""
        if self._shut and thread not in self.inside:
            wait_until(lambda: not self._shut, time.monotonic() + _PATIENCE)

    def shut(self, deadline: float) -> None:
        self._shut = True
        me = threading.get_ident()
        wait_until(lambda: {thread for thread, depth in list(self.inside.items()) if depth} <= {me}, deadline)

    def open(self) -> None:
        self._shut = False


_gate = _Gate()


@interruptible
def calculating() -> Generator[None, None, None]:
    """Keep the process from forking while the block runs, or at least delay the fork until its deadline.

    >>> with calculating():
    ...     1 + 1
    2
    """
    thread, gate = threading.get_ident(), _gate
    gate.wait(thread)
    inside = gate.inside
    before = inside.get(thread, 0)
    try:
        inside[thread] = before + 1
        yield
    finally:
        if before:
            inside[thread] = before
        else:
            inside.pop(thread, None)


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
