"""The next key of each table. SQLite stores it in a table, which may have been edited.

If the stored value is infinity, SQLite reports that the disk is full; after 1e300, it continues with negative keys.
"""

from __future__ import annotations

import sqlite3

from cascade_memory.domain.validation import GREATEST
from cascade_memory.errors import StoreCorrupt
from cascade_memory.ledger.schema import TABLES

KEYS = {table.name: table.counter for table in TABLES if table.counter is not None}
_LAST = 2**62  # keys beyond this are too close to SQLite's greatest key


def heal(connection: sqlite3.Connection, path: str) -> None:
    """Repair an invalid next key; raise if a row has a key that no next key can follow."""
    _drop_strange(connection)
    wrong = "SELECT 1 FROM sqlite_sequence WHERE name = ? AND (typeof(seq) <> 'integer' OR seq NOT BETWEEN 0 AND ?)"
    for table, key in KEYS.items():
        if connection.execute(wrong, (table, GREATEST)).fetchone():
            follow_last(connection, table)
        (last,) = connection.execute(f"SELECT max({key}) FROM {table}").fetchone()
        if last is not None and last > _LAST:
            raise StoreCorrupt(f"{path} has a row of {table} with the impossible key {last}; restore it from a backup")


def _drop_strange(connection: sqlite3.Connection) -> None:
    """Delete counters of no table, and second ones of a table: SQLite uses the first one."""
    names = ", ".join(f"'{table}'" for table in KEYS)
    strange = f"""name IS NULL OR name NOT IN ({names}) OR rowid NOT IN
      (SELECT min(rowid) FROM sqlite_sequence WHERE name IN ({names}) GROUP BY name)"""
    if connection.execute(f"SELECT 1 FROM sqlite_sequence WHERE {strange} LIMIT 1").fetchone():
        connection.execute(f"DELETE FROM sqlite_sequence WHERE {strange}")


def follow_last(connection: sqlite3.Connection, table: str) -> None:
    """Let the next row of a table get the key after the last one."""
    last = f"SELECT coalesce(max({KEYS[table]}), 0) FROM {table} WHERE {KEYS[table]} <= {GREATEST}"
    connection.execute(f"UPDATE sqlite_sequence SET seq = ({last}) WHERE name = ?", (table,))
