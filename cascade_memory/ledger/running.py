"""Running time: for how long a folder has certainly existed, independent of any wall clock.

It is counted by the clock that starts when the system boots, which nobody sets and all processes share. The folder notes how
much was counted, until when, and on the clock of which boot. After another boot (or on another machine) the time in between
is unknown and not counted: running time never exceeds the time that has really passed.
"""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import time
import uuid
from pathlib import Path
from typing import cast

from cascade_memory.ledger.database import Connection, Remote
from cascade_memory.ledger.rows import SET_FACT

_NOTE = "running"
_EVERY = 60.0  # seconds: the most that is lost when the machine is switched off


def clock() -> float:
    """Return the seconds since the boot, including time asleep if the system counts that."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def boot() -> str:
    """Identify the boot; if the system does not tell, each process counts as its own boot."""
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


class Asked:
    """What was noted, and what time it is: asked for together with other things that a transaction reads."""

    def __init__(self, connection: Connection) -> None:
        # As bytes, since an edited note may be no text.
        self._note = connection.execute("SELECT CAST(value AS BLOB) FROM meta WHERE key = ?", (_NOTE,))
        self._clock = None if isinstance(connection, sqlite3.Connection) else cast("Remote", connection).clock()

    def noted(self) -> tuple[float, float, str]:
        """Return the time counted, until when, and on which clock."""
        row = self._note.fetchone()
        return (0.0, 0.0, "") if row is None else _read(row[0])

    def moment(self) -> tuple[float, str]:
        """Return the time on the clock that everybody who has this ledger open shares, and which clock that is."""
        return (clock(), boot()) if self._clock is None else (float(self._clock.fetchone()[0]), "server")


def now(connection: Connection, *, note: bool = False, asked: Asked | None = None) -> float:
    """Return the running time, inside a transaction that writes; with ``note``, record it."""
    asked = asked or Asked(connection)
    counted, at, where = asked.noted()
    moment, here = asked.moment()
    if where != here:
        _write(connection, counted, moment, here)  # a new boot: counting goes on from the recorded time
        return counted
    passed = max(0.0, moment - at)
    if passed > _EVERY or (note and passed):
        _write(connection, counted + passed, moment, here)
    return counted + passed


def seen(connection: Connection) -> float:
    """Return the running time without writing anything."""
    asked = Asked(connection)
    counted, at, where = asked.noted()
    moment, here = asked.moment()
    return counted + max(0.0, moment - at) if where == here else counted


@functools.lru_cache(maxsize=8)  # it changes once a minute
def _read(note: object) -> tuple[float, float, str]:
    try:
        counted, at, where = json.loads(note)  # type: ignore[arg-type] - of an edited file it may be anything
        return max(0.0, float(counted)), float(at), str(where)
    except (ValueError, TypeError, RecursionError, OverflowError):
        return 0.0, 0.0, ""  # the note was edited: running time starts again, so nothing expires too early


def _write(connection: Connection, counted: float, at: float, where: str) -> None:
    connection.execute(SET_FACT, (_NOTE, json.dumps([counted, at, where])))
