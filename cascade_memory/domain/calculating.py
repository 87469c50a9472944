"""Keeps the process from forking, and Python from exiting, while one of its threads calculates.

OpenBLAS ends its worker threads when a process forks. A thread of the parent that waits for them at that moment waits forever.
OpenBLAS uses threads for large products, and with older versions of numpy for small matrices as well.

Up to version 3.13, an exiting Python ends each background thread as soon as the thread returns from native code. C++ code
cannot be left in this way: if a thread is inside torch or onnxruntime, the process aborts.
"""

from __future__ import annotations

import atexit
import math
import threading
import time
from collections.abc import Generator

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.waiting import wait_until

_PATIENCE = 1.0  # seconds for which a calculation waits while another thread is about to fork
_AT_EXIT = 10.0  # seconds for which Python's exit waits: a model may be loading


class _Gate:
    """Counts the threads that calculate, and can be shut so that no other thread begins.

    Each thread changes only its own count, in one step and without a lock: so an interrupt leaves no count wrong.
    """

    def __init__(self) -> None:
        self.inside: dict[int, int] = {}  # thread id -> how deeply its calculations are nested
        self._shut = self._for_good = False

    def wait(self, thread: int) -> None:
        """Wait while the gate is shut, unless this thread is inside already."""
        if not self._shut or thread in self.inside:
            return
        if not self._for_good:
            wait_until(lambda: not self._shut, time.monotonic() + _PATIENCE)
        elif threading.current_thread() is not threading.main_thread():
            wait_until(lambda: False, math.inf)  # it ends with the process

    def shut(self, deadline: float) -> None:
        self._shut = True
        me = threading.get_ident()
        wait_until(lambda: {thread for thread, depth in list(self.inside.items()) if depth} <= {me}, deadline)

    def shut_for_good(self) -> None:
        self._for_good = True
        self.shut(time.monotonic() + _AT_EXIT)

    def open(self) -> None:
        self._shut = self._for_good


_gate = _Gate()


@interruptible
def calculating() -> Generator[None, None, None]:
    """Keep the process from forking or exiting while the block runs, or delay the fork or the exit until its deadline.

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


@atexit.register
def _exit() -> None:
    _gate.shut_for_good()


def start_anew() -> None:
    """Forget, in a forked child process, which threads were calculating in the parent."""
    global _gate  # noqa: PLW0603 - threads that do not exist in the child may hold its locks
    _gate = _Gate()
