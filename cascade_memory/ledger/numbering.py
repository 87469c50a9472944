"""The numbers of namespaces and the keys of rows: none is given twice, not even that of a forgotten name or row.

Other processes may still use the number of a name that was just forgotten. Nothing is stored under it any more. A copy
continues after the last key.

SQLite stores the next key of a table in a table, which may have been edited. If the stored value is infinity, SQLite reports
that the disk is full; after 1e300, it continues with negative keys.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from cascade_memory.domain.records import SETTLED
from cascade_memory.domain.validation import GREATEST
from cascade_memory.errors import NamespaceForgotten, StoreCorrupt
from cascade_memory.ledger import owned
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.facts import fact, whole_number
from cascade_memory.ledger.rows import SET_FACT
from cascade_memory.ledger.schema import TABLES

FORGOTTEN = "namespaces"  # a fact: the greatest number whose name was forgotten
KEYS = {table.name: table.counter for table in TABLES if table.counter is not None}
_LAST = 2**62  # keys beyond this are too close to SQLite's greatest key
_NUMBERED = {**KEYS, "namespace": "id"}  # with the namespaces, which SQLite does not count
_SEQUENCE = "pg_get_serial_sequence('cascade_memory.{}', '{}')"


def number_of(connection: Connection, name: str) -> int | None:
    """Return the number of a namespace; None if there is none of this name."""
    row = connection.execute("SELECT id FROM namespace WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])


def create(connection: Connection, name: str) -> int:
    """Give a name a number, unless it has one, inside a transaction that writes; return its number."""
    if isinstance(connection, sqlite3.Connection):  # PostgreSQL counts by itself
        (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM namespace").fetchone()
        row = (max(last, ever(connection)) + 1, name)
        connection.execute("INSERT INTO namespace (id, name) VALUES (?, ?) ON CONFLICT DO NOTHING", row)
    else:
        connection.execute("INSERT INTO namespace (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))
    number = number_of(connection, name)
    assert number is not None
    return number


def ever(connection: Connection) -> int:
    """Return the greatest number whose name was forgotten; 0 if there is none."""
    return whole_number(fact(connection, FORGOTTEN))


def check(connection: Connection, *numbers: int) -> None:
    """Raise if a number has no name any more; in PostgreSQL do nothing, since it checks references when they are written."""
    for number in numbers if isinstance(connection, sqlite3.Connection) else ():
        if connection.execute("SELECT 1 FROM namespace WHERE id = ?", (number,)).fetchone() is None:
            raise NamespaceForgotten.now()


def forget(connection: Connection, number: int) -> bool:
    """Forget the name of a namespace, inside a transaction that writes; return False if anything is left in the namespace."""
    connection.execute("DELETE FROM recall WHERE namespace = ? AND kind = 'search'", (number,))
    if not owned.is_empty(connection, number):
        return False
    connection.execute(SET_FACT, (FORGOTTEN, str(max(number, ever(connection)))))
    connection.execute("DELETE FROM namespace WHERE id = ?", (number,))
    return True


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
    """Delete counters that belong to no table, and all but the first counter of each table: SQLite uses the first one."""
    names = ", ".join(f"'{table}'" for table in KEYS)
    strange = f"""name IS NULL OR name NOT IN ({names}) OR rowid NOT IN
      (SELECT min(rowid) FROM sqlite_sequence WHERE name IN ({names}) GROUP BY name)"""
    if connection.execute(f"SELECT 1 FROM sqlite_sequence WHERE {strange} LIMIT 1").fetchone():
        connection.execute(f"DELETE FROM sqlite_sequence WHERE {strange}")


def follow_last(connection: sqlite3.Connection, table: str) -> None:
    """Let the next row of a table get the key after the last one."""
    last = f"SELECT coalesce(max({KEYS[table]}), 0) FROM {table} WHERE {KEYS[table]} <= {GREATEST}"
    connection.execute(f"UPDATE sqlite_sequence SET seq = ({last}) WHERE name = ?", (table,))


def greatest_keys(connection: Connection) -> dict[str, int]:
    """Return the greatest key that was ever given, for each table that has had a row."""
    found: dict[str, int] = {}
    for table, key in _NUMBERED.items():
        (there,) = connection.execute(f"SELECT max({key}) FROM {table}").fetchone()
        ever = _ever_given(connection, table, key)
        if greatest := max(int(there or 0), ever if 0 <= ever <= GREATEST else 0):
            found[table] = greatest
    return found


def _ever_given(connection: Connection, table: str, key: str) -> int:
    if table == "namespace" and isinstance(connection, sqlite3.Connection):
        return ever(connection)
    if isinstance(connection, sqlite3.Connection):
        row = connection.execute("SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    elif table == "outcome":
        # A sequence does not go back with its transaction, and from this number it is told which outcomes a memory knows.
        row = connection.execute("SELECT ref FROM change WHERE kind = ? ORDER BY seq DESC LIMIT 1", (SETTLED,)).fetchone()
    else:
        sequence = _SEQUENCE.format(table, key)
        row = connection.execute(f"SELECT pg_sequence_last_value({sequence}::regclass)").fetchone()
    return 0 if row is None else int(row[0] or 0)


def go_on_after(connection: Connection, greatest: Mapping[str, int]) -> None:
    """Let the next row of each table get a greater key than any row before."""
    for table, key in greatest.items():
        if not isinstance(connection, sqlite3.Connection):
            connection.execute(f"SELECT setval({_SEQUENCE.format(table, _NUMBERED[table])}, ?)", (key,)).fetchall()
        elif table in KEYS:
            connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, key))
        elif connection.execute("SELECT coalesce(max(id), 0) < ? FROM namespace", (key,)).fetchone()[0]:
            connection.execute(SET_FACT, (FORGOTTEN, str(key)))
