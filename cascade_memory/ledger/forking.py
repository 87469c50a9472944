"""Makes forks safe for open ledgers.

SQLite keeps a list of the locks that a process holds, guarded by mutexes. A forked child gets a copy: a mutex that another
thread was holding at that moment is never released in the child. So no thread may be inside SQLite during a fork. A child
that opens a ledger first closes inherited connections: SQLite would not request a lock that it believes it holds already.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol

from cascade_memory.domain import calculating
from cascade_memory.domain.interruptible import take
from cascade_memory.domain.waiting import wait_until
from cascade_memory.errors import MemoryForked

_PATIENCE = 1.0  # seconds that a fork waits for a writer at most
_OFTEN = 100  # times that a step around a fork is tried again after interrupts


class Pausable(Protocol):
    """The connections of one ledger."""

    born: int

    def pause(self, deadline: float) -> bool:
        """Keep all threads out of SQLite; return False if one is still inside at the deadline."""
        ...

    def resume(self) -> None:
        """Let all threads in again."""
        ...

    def real_path(self) -> str | None:
        """Return the real path of the file."""
        ...

    def all_connections(self) -> list[sqlite3.Connection]:
        """Return all open connections."""
        ...


_births = itertools.count()
_live: weakref.WeakSet[Pausable] = weakref.WeakSet()
_registry = threading.Lock()  # held throughout a fork: one at a time
_turn: list[bool] = []  # whether a thread that forks holds it
_paused: list[tuple[Pausable, bool]] = []
# Kept alive: garbage collection would close them at an arbitrary time.
_inherited: list[tuple[str | None, list[sqlite3.Connection], bool]] = []
_stuck: list[tuple[str | None, list[sqlite3.Connection]]] = []
_letting_go = threading.RLock()  # held until the inherited connections are closed, by whichever thread opens a ledger first
under_way = False  # True if a thread is about to fork: other threads then call ``give_way``


def watch(connections: Pausable) -> None:
    """Pause these connections during every fork from now on."""
    with _registry:
        connections.born = next(_births)
        _live.add(connections)


def give_way() -> None:
    """Wait until a thread that is about to fork has done so; otherwise a series of writers could delay the fork for long."""
    wait_until(lambda: not under_way, time.monotonic() + _PATIENCE)


def let_go_of_inherited(path: str | None) -> None:
    """Close the connections inherited from the parent process, before the ledger at ``path`` is opened.

    Raise if the parent was using this ledger during the fork.
    """
    with _letting_go:
        while _inherited:
            place, connections, quiet = _inherited.pop()
            if not quiet:
                _stuck.append((place, connections))
                continue
            for connection in connections:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
    if path is not None and any(place == path for place, _ in _stuck):
        raise MemoryForked(
            f"this process was forked while its parent was using {path} for more than {_PATIENCE:g} s without a pause, and "
            "cannot open it: fork at another time, or start workers with the 'spawn' method"
        )


def _insist(step: Callable[[], object]) -> None:
    """Run a step of a fork hook; try it again if an exception interrupts it.

    Python ignores an exception that leaves a fork hook, and the rest of the hook would not run.
    """
    for _ in range(_OFTEN):
        try:
            step()
        except BaseException:  # noqa: BLE001 - see above
            continue
        return


def _before() -> None:
    global under_way  # noqa: PLW0603 - of the process, as a fork is
    held: list[bool] = []
    _insist(lambda: True in held or take(_registry, held))
    _turn[:] = held
    # First: a calculating thread may be about to use the ledger.
    _insist(lambda: calculating.pause(time.monotonic() + _PATIENCE))
    under_way = True
    _insist(_pause_all)


def _pause_all() -> None:
    deadline = time.monotonic() + _PATIENCE
    _paused[:] = [(one, False) for one in sorted(_live, key=lambda one: one.born)]  # first, so that all go on afterwards
    _paused[:] = [(one, one.pause(deadline)) for one, _ in _paused]


def _after_in_parent() -> None:
    _insist(_resume_all)
    _insist(_end)


def _resume_all() -> None:
    while _paused:
        _paused[-1][0].resume()
        _paused.pop()


def _after_in_child() -> None:
    global _letting_go  # noqa: PLW0603 - as above
    _letting_go = threading.RLock()  # a thread of the parent may have held it
    for one, quiet in _paused:
        one.resume()
        _inherited.append((one.real_path(), one.all_connections(), quiet))
        _live.discard(one)
    _paused.clear()
    calculating.start_anew()
    _end()


def _end() -> None:
    global under_way  # noqa: PLW0603 - as above
    calculating.resume()
    under_way = False
    if True in _turn:
        _turn[:] = []
        _registry.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
