"""Copies of a ledger file, and whether a file is a sound ledger."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from cascade_memory.errors import SchemaTooNew, StoreCorrupt
from cascade_memory.ledger.schema import APPLICATION_ID, SCHEMA_VERSION

_COUNTED = {"cases": "cases", "episodes": "episode", "outcomes": "outcome"}


def copy_into(connection: sqlite3.Connection, target: Path) -> dict[str, int]:
    """Write one consistent state into a new file, without waiting for writers or making them wait; return what it holds."""
    connection.execute("VACUUM INTO ?", (str(target),))
    with contextlib.closing(sqlite3.connect(target)) as copy:
        # The copy has no Chroma yet, nor shares one.
        copy.execute("DELETE FROM meta WHERE key LIKE 'mirror%' OR key = 'identity'")
        copy.commit()
    return verified(target)


def verified(path: Path) -> dict[str, int]:
    """Read a ledger file from end to end without changing it; return what it holds, or say what is wrong with it."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if application != APPLICATION_ID:
                raise StoreCorrupt(f"{path} is no ledger of cascade-memory")
            if version > SCHEMA_VERSION:
                raise SchemaTooNew(
                    f"{path} has schema version {version}, this library reads up to {SCHEMA_VERSION}; upgrade it"
                )
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok" or connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
                raise StoreCorrupt(f"{path} is damaged ({verdict}); nothing was changed")
            return {
                name: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for name, table in _COUNTED.items()
            }
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(f"{path} is no readable ledger ({error}); nothing was changed") from error
