"""Reads a ledger file that nobody else has open, and that nobody else can open meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from pathlib import Path

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.sqlite_files import connected
from cascade_memory.errors import StoreCorrupt, StoreError
from cascade_memory.ledger.explained import FAILURES, explain

_PATIENCE = 2.0  # seconds: a process may just be closing it


@interruptible
def read_alone(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """Yield a connection that has the ledger file ``path`` for itself until the block ends.

    Raise ``StoreError`` if the file is open anywhere else, and ``StoreCorrupt`` if it is damaged.
    """
    try:
        with connected(path, isolation_level=None, timeout=_PATIENCE) as connection:
            try:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise StoreError(f"{path} is in use ({error}); close it everywhere before it is moved") from error
            _check(connection, path)
            yield connection
            connection.execute("COMMIT")
    except FAILURES as error:
        explain(error, path)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    lost = connection.execute("PRAGMA foreign_key_check").fetchone()
    if verdict != "ok" or lost is not None:
        why = verdict if lost is None else f"the row {lost[1]} of {lost[0]} belongs to no row of {lost[2]}"
        raise StoreCorrupt(f"{path} is damaged ({why}); nothing was moved. Repair it first: cascade-memory data doctor --fix")
