"""Which key the next row of each table gets. SQLite keeps that in a table of its own, which somebody may have edited.

After infinity SQLite says that the disk is full, and after 1e300 it counts below zero.
"""

from __future__ import annotations

import sqlite3

from cascade_memory.errors import StoreCorrupt
from cascade_memory.ledger import rules

KEYS = {
    **{"change": "seq", "solution": "id"},
    **dict.fromkeys(("episode", "recall", "outcome", "cases", "addition", "event"), "key"),
}
_LAST = 2**62  # a key from which on SQLite would soon have no other one


def heal(connection: sqlite3.Connection, path: str) -> None:
    """Put right what the next key cannot follow; refuse a ledger that has a row with a key that no other can follow."""
    wrong = "SELECT 1 FROM sqlite_sequence WHERE name = ? AND (typeof(seq) <> 'integer' OR seq NOT BETWEEN 0 AND ?)"
    for table, key in KEYS.items():
        if connection.execute(wrong, (table, rules.GREATEST)).fetchone():
            follow_last(connection, table)
        (last,) = connection.execute(f"SELECT max({key}) FROM {table}").fetchone()
        if last is not None and last > _LAST:
            raise StoreCorrupt(f"{path} has a row of {table} with the number {last}, which none gets; restore it from a backup")


def follow_last(connection: sqlite3.Connection, table: str) -> None:
    """Let the next row of a table get the key after its last one."""
    last = f"SELECT coalesce(max({KEYS[table]}), 0) FROM {table} WHERE {KEYS[table]} <= {rules.GREATEST}"
    connection.execute(f"UPDATE sqlite_sequence SET seq = ({last}) WHERE name = ?", (table,))
