"""The names of namespaces, and their numbers: a number is never given twice, not even that of a forgotten name.

Other processes may still use the number of a name that was just forgotten. Nothing is stored under it any more.
"""

from __future__ import annotations

import sqlite3

from cascade_memory.errors import NamespaceForgotten
from cascade_memory.ledger import owned
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.facts import fact, whole_number
from cascade_memory.ledger.rows import SET_FACT

GREATEST = "namespaces"  # a fact: the greatest number whose name was forgotten


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
    return whole_number(fact(connection, GREATEST))


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
    connection.execute(SET_FACT, (GREATEST, str(max(number, ever(connection)))))
    connection.execute("DELETE FROM namespace WHERE id = ?", (number,))
    return True
