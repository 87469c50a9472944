"""Running time: for how long a folder has certainly existed, independent of any wall clock.

It is counted by the clock that starts when the system boots, which nobody sets and all processes share. The folder notes how
much was counted, until when, and on the clock of which boot. After another boot (or on another machine) the time in between
is unknown and not counted: running time never exceeds the time that has really passed.
"""

from __future__ import annotations

import functools
import json
import os
import time
import uuid
from pathlib import Path

from cascade_memory.domain.plain_json import parsed
from cascade_memory.ledger.database import Connection, has_clock
from cascade_memory.ledger.facts import asked, said
from cascade_memory.ledger.rows import SET_FACT, is_finite

_NOTE = "running"
NOTED = asked(_NOTE)
_EVERY = 60.0  # seconds: the most that is lost when the machine is switched off


def clock() -> float:
    """Return the seconds since the boot, including time asleep if the system counts that."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def boot() -> str:
    """Return a text that identifies the boot of the system; without one from the system, each process counts as a boot."""
    return _boot_of(os.getpid())


@functools.lru_cache(maxsize=1)
def _boot_of(pid: int) -> str:
    try:
        number = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"process {pid} {uuid.uuid4().hex}"
    try:
        return f"{number} {os.readlink('/proc/self/ns/time')}"  # a container may have a clock of its own
    except OSError:
        return number


_UNASKED = object()


def now(connection: Connection, *, note: bool = False, noted: object = _UNASKED) -> float:
    """Return the running time, inside a transaction that writes; with ``note``, record it.

    ``noted`` is the result of the query ``NOTED``, if the caller has already run it together with other queries.
    """
    counted, at, where = _noted(connection) if noted is _UNASKED else _read((noted,))
    moment, here = _moment(connection)
    if where != here:
        _write(connection, counted, moment, here)  # a new boot: counting goes on from the recorded time
        return counted
    passed = max(0.0, moment - at)
    if passed > _EVERY or (note and passed):
        _write(connection, counted + passed, moment, here)
    return counted + passed


def seen(connection: Connection) -> float:
    """Return the running time without writing anything."""
    counted, at, where = _noted(connection)
    moment, here = _moment(connection)
    return counted + max(0.0, moment - at) if where == here else counted


def is_noted(connection: Connection) -> bool:
    """Say whether the running time is being counted: whether somebody has recorded it since the boot."""
    return _noted(connection)[2] == _moment(connection)[1]


def _moment(connection: Connection) -> tuple[float, str]:
    """Return the time on the clock that everybody who has this ledger open shares, and which clock that is."""
    return connection.clock() if has_clock(connection) else (clock(), boot())


def _noted(connection: Connection) -> tuple[float, float, str]:
    return _read(connection.execute(*NOTED).fetchone())


@functools.lru_cache(maxsize=8)  # it changes once a minute
def _read(row: tuple[object] | None) -> tuple[float, float, str]:
    match parsed(said(row)):
        case [counted, at, str(where)] if is_finite(counted) and is_finite(at):
            return max(0.0, float(counted)), float(at), where
        case _:
            return 0.0, 0.0, ""  # none yet, or it was edited: running time starts again, so nothing expires too early


def _write(connection: Connection, counted: float, at: float, where: str) -> None:
    connection.execute(SET_FACT, (_NOTE, json.dumps([counted, at, where])))
