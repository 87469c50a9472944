"""A background thread whose start waits for nothing, so that no interrupt makes it wait for ever.

``threading.Thread.start`` waits until the new thread runs. Up to Python 3.11, an exception that is set in a thread while this
thread starts another one hits the new thread instead. The new thread then ends before it runs ("dies unborn"), and the thread
that started it waits for ever.
"""

from __future__ import annotations

import _thread
import threading
import time
from collections import deque
from collections.abc import Callable

from cascade_memory.domain.waiting import wait_until

_UNBORN = 1.0  # seconds after which a thread that does not run never will


class Daemon:
    """A thread that does one piece of work, and that nobody waits for when Python exits.

    >>> done = []
    >>> daemon = Daemon(lambda: done.append(1), "example")
    >>> daemon.start()
    >>> daemon.join(10.0)
    >>> done
    [1]
    """

    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._work, self.name = work, name
        self._asked = 0.0  # on the monotonic clock: when it was started
        self._claim = deque((True,))  # the thread that takes the one item does the work
        self._me = 0
        self._over = False

    def start(self) -> None:
        """Start the thread; raise RuntimeError if that is impossible. A thread that died before it ran may be started again."""
        self._asked = time.monotonic()
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        try:
            self._claim.pop()
        except IndexError:
            return
        try:
            self._me = threading.get_ident()
            threading.current_thread().name = self.name
            self._work()
        finally:
            self._over = True
            # Up to Python 3.12, ``threading`` counts a thread that it has not started itself for ever.
            getattr(threading, "_active", {}).pop(threading.get_ident(), None)

    @property
    def is_lost(self) -> bool:
        """True if the thread was started more than a second ago and has not begun to run; it then counts as dead."""
        return bool(self._claim and self._asked) and time.monotonic() > self._asked + _UNBORN

    @property
    def is_current(self) -> bool:
        """True on the thread itself."""
        return self._me == threading.get_ident()

    def join(self, seconds: float) -> None:
        """Wait until the thread ends, but no longer than ``seconds``."""
        if self._asked:
            wait_until(lambda: self._over or self.is_current or self.is_lost, time.monotonic() + seconds)
