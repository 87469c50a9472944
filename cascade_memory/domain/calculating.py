"""Nobody is inside a calculation of ours while the process forks.

OpenBLAS ends its threads when a process forks, and a thread that waits for them at that moment waits for ever, in the parent.
It uses threads for large products, and with older versions of numpy for small matrices as well.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator

_PATIENCE = 1.0  # seconds that somebody waits for a thread that is about to fork


class _Gate:
    """Who is inside, and whether anybody may enter."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}  # how deep, by thread
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
    """Keep the process from forking inside the block, for as long as a fork has patience.

    >>> with calculating():
    ...     1 + 1
    2
    """
    thread, gate = threading.get_ident(), _gate
    gate.enter(thread)
    try:
        yield
    finally:
        if gate is _gate:  # not in a child that was forked in here: it has another one
            gate.leave(thread)


def pause(deadline: float) -> None:
    """Let nobody calculate, and wait for those who do, but for no longer than to a moment of the monotonic clock."""
    _gate.shut(deadline)


def resume() -> None:
    """Let everybody calculate again."""
    _gate.open()


def start_anew() -> None:
    """Forget, in a forked child, who was calculating in the parent."""
    global _gate  # noqa: PLW0603 - its locks may be held by threads that are not here
    _gate = _Gate()
