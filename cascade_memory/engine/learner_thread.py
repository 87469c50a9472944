"""The background thread that learns while agents go on working."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Protocol

_REST = 0.005  # seconds to wait before learning, so that a recall right after a reward has the interpreter to itself


class Learning(Protocol):
    """What the thread needs from its engine."""

    @property
    def closed(self) -> bool:
        """True if the thread should stop."""
        ...

    def catch_up(self) -> None:
        """Apply new lines of the log and learn from them."""
        ...


class LearnerThread:
    """Learns whenever it is woken; it holds its engine weakly, so that a memory in RAM can be dropped without being closed."""

    def __init__(self, engine: Learning) -> None:
        self._wake = threading.Event()
        weakref.finalize(engine, self._wake.set)
        self._thread = threading.Thread(
            target=_learn_forever, args=(weakref.ref(engine), self._wake), name="cascade-memory-learner", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Tell the thread that there is something to learn."""
        self._wake.set()

    def finish(self) -> None:
        """Wait until the thread of a closed engine has ended; its current step may take some time."""
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=60)


def _learn_forever(engine: weakref.ref[Learning], wake: threading.Event) -> None:
    while True:
        wake.wait()
        time.sleep(_REST)
        wake.clear()
        found = engine()
        if found is None or found.closed:
            return
        found.catch_up()
        del found
