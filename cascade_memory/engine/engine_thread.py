"""The background threads of an engine: they learn and remove surplus cases while agents go on working."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

from cascade_memory.domain.daemon import Daemon
from cascade_memory.domain.waiting import Flag

_REST = 0.005  # seconds to wait before working, so that a recall right after a reward has the interpreter to itself


class Closable(Protocol):
    """The part of an engine that its threads need."""

    @property
    def closed(self) -> bool:
        """True if the thread should stop."""
        ...


E = TypeVar("E", bound=Closable)


class EngineThread(Generic[E]):
    """Does one kind of work whenever it is woken.

    Its reference to the engine is weak, so that a memory in RAM can be freed without being closed.
    """

    def __init__(self, engine: E, name: str, work: Callable[[E], object]) -> None:
        self._wake = Flag()
        weakref.finalize(engine, self._wake.set)
        self._thread = Daemon(partial(_work_forever, weakref.ref(engine), work, self._wake), f"cascade-memory-{name}")
        self._thread.start()

    def wake(self) -> None:
        """Tell the thread that there is something to do."""
        self._wake.set()
        if self._thread.is_lost:
            self._thread.start()

    def finish(self) -> None:
        """Wait until the thread of a closed engine has ended; its current step may take some time."""
        self._wake.set()
        self._thread.join(60)


def _work_forever(engine: weakref.ref[E], work: Callable[[E], object], wake: Flag) -> None:
    while True:
        wake.wait()
        time.sleep(_REST)
        wake.is_set = False
        found = engine()
        if found is None or found.closed:
            return
        work(found)
        del found
