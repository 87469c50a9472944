"""What the tables of a ledger look like, read from the statements that create them."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from dataclasses import dataclass

from cascade_memory.ledger.schema import TABLES

_TYPES: dict[str, type | None] = {"INTEGER": int, "REAL": float, "TEXT": str, "BLOB": bytes, "": None}


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the names of its columns, their types (None: a value of metadata), which may be NULL, and its key."""

    name: str
    columns: tuple[str, ...]
    types: tuple[type | None, ...]
    optional: tuple[bool, ...]
    key: tuple[int, ...]  # positions among the columns

    @property
    def is_of_fields(self) -> bool:
        """Whether it holds metadata, one row per value."""
        return None in self.types

    @property
    def listed(self) -> str:
        """The columns, as a statement names them."""
        return ", ".join(self.columns)


@functools.lru_cache(maxsize=1)
def all_tables() -> tuple[Table, ...]:
    """Return the tables, each after those that it refers to.

    >>> [table.name for table in all_tables()][:3]
    ['meta', 'namespace', 'episode']
    >>> all_tables()[1]
    Table(name='namespace', columns=('id', 'name'), types=(<class 'int'>, <class 'str'>), optional=(False, False), key=(0,))
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(TABLES)
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'sqlite_sequence' ORDER BY rowid"
        return tuple(_described(fresh, name) for (name,) in fresh.execute(names).fetchall())


def _described(fresh: sqlite3.Connection, name: str) -> Table:
    rows = fresh.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (name,)).fetchall()
    return Table(
        name=name,
        columns=tuple(row[0] for row in rows),
        types=tuple(_TYPES[row[1]] for row in rows),
        optional=tuple(not row[2] and not row[3] for row in rows),
        key=tuple(place for place, _ in sorted(enumerate(rows), key=lambda one: one[1][3]) if rows[place][3]),
    )
