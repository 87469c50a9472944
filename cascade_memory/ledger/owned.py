"""Which rows belong to which: what is deleted with an episode, a case or a namespace, and which rows belong to nothing.

All of this follows from the declared tables, so a table that is added takes part in every deletion, and in the check for
orphans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.declaring import Table
from cascade_memory.ledger.rows import KEYS, executed_for
from cascade_memory.ledger.schema import TABLES

_WHEREVER = ("cases", "expired")
_BY_NAME = {table.name: table for table in TABLES}


def _below(owner: str, chosen: str) -> Iterator[tuple[str, str, str]]:
    """Yield (table, its declared name in counts, the condition that selects its rows) for all that belongs to chosen rows.

    A table comes before its owner.
    """
    for table in reversed(TABLES):
        if table.owner is not None and table.owner.of == (owner,):
            where = f"{table.owner.name} {chosen}"
            yield from _below(table.name, f"IN (SELECT {table.keys[0]} FROM {table.name} WHERE {where})")
            yield table.name, table.counted, where


def _kept(table: Table) -> Iterator[tuple[str, str]]:
    """Yield (name, the condition that selects its rows) for a table of what belongs to cases, after the tables below it.

    The cases may be stored or set aside (expired or evicted).
    """
    of_them = f"cases_key IN ({KEYS}) {{}}"
    for name, _, where in _below(table.name, f"IN (SELECT key FROM {table.name} WHERE {of_them})"):
        yield name, where
    yield table.name, of_them


def _in_namespace(table: Table) -> str:
    """Return the condition that selects the rows of a table in a namespace; empty if its rows are in none."""
    if table.is_of_a_namespace or table.owner is None:
        return "namespace = ?" if table.is_of_a_namespace else ""
    owner = _BY_NAME[table.owner.of[0]]
    return f"{table.owner.name} IN (SELECT {owner.keys[0]} FROM {owner.name} WHERE {_in_namespace(owner)})"


def _not_in(column: str, owner: str) -> str:
    return f"{column} NOT IN (SELECT {_BY_NAME[owner].keys[0]} FROM {owner})"


def _orphaned(table: Table) -> str:
    """Return the condition that selects the rows of a table that belong to nothing; empty if none of them needs an owner."""
    if table.needs:
        return " OR ".join(_not_in("key", need) for need in table.needs)
    column = table.owner
    if table.orphaned or column is None:
        return table.orphaned
    known = [f"{column.name} IS NOT NULL"] if column.optional else []
    return " AND ".join([*known, *(_not_in(column.name, owner) for owner in column.of)])


def _to_query(table: Table) -> str:
    """Return a table, joined with the tables that lead from it to the text of a task (``query``)."""
    joined = table.name
    while "query" not in table.names:
        assert table.owner is not None, f"the vectors of {table.name} belong to no text"
        owner = _BY_NAME[table.owner.of[0]]
        joined += f" JOIN {owner.name} ON {owner.name}.{owner.keys[0]} = {table.name}.{table.owner.name}"
        table = owner
    return joined


_BELONGING = {table.name: tuple(_below(table.name, f"IN ({KEYS})")) for table in TABLES}
_NAMESPACES = tuple((table.name, table.counted, where) for table in reversed(TABLES) if (where := _in_namespace(table)))
_HOLDING = tuple(table.name for table in TABLES if table.is_of_a_namespace)
_PURGED = tuple((table.name, table.purged) for table in TABLES if table.purged)
# The rows that belong to nothing, by table. First what is of no use by itself: when that goes, it orphans others.
ORPHANS = {table.name: where for table in sorted(TABLES, key=lambda one: not one.needs) if (where := _orphaned(table))}
WITH_QUERIES = {table.name: _to_query(table) for table in TABLES if "vector" in table.names}  # the tables of vectors
DATED = tuple((table.name, column.name) for table in TABLES for column in table.columns if column.dated)
# The tables that name a case wherever that is; the rows of the others with this column are written with the case.
OF_CASES = tuple(table.name for table in TABLES if "cases_key" in table.names and table.column("cases_key").of != ("cases",))


# What goes with a case only when that is set aside no more, with all that belongs to it; first what belongs to others.
_ANYWHERE = tuple(one for table in TABLES if table.owner is not None and table.owner.of == _WHEREVER for one in _kept(table))


def count_with(connection: Connection, owner: str, key: int) -> dict[str, int]:
    """Count the rows that would be deleted with a row, by the names under which their tables count them (``counted``).

    Rows of tables without such a name are deleted as well, but not counted.
    """
    counts = {counted: (table, where.replace(KEYS, "?")) for table, counted, where in _BELONGING[owner] if counted}
    each = ", ".join(f"(SELECT count(*) FROM {table} WHERE {where})" for table, where in counts.values())
    found = connection.execute(f"SELECT {each}", [key] * len(counts)).fetchone() if counts else ()
    return dict(zip(counts, found, strict=True))


def delete_with(connection: Connection, owner: str, keys: Sequence[object]) -> None:
    """Delete everything that belongs to rows of a table and to nothing else, but not these rows themselves."""
    for table, _, where in _BELONGING[owner]:
        executed_for(connection, f"DELETE FROM {table} WHERE {where}", keys)


def delete_of_cases(connection: Connection, owner: str, keys: Sequence[object], condition: str = "") -> None:
    """Delete everything that belongs to cases; ``owner`` is the table that holds them, stored or set aside.

    What belongs to a case in both states, such as who added it by hand, is deleted only if the case meets the condition.
    """
    delete_with(connection, owner, keys)
    for table, where in _ANYWHERE:
        executed_for(connection, f"DELETE FROM {table} WHERE {where.format(condition)}", keys)


def delete_namespace(connection: Connection, namespace: int) -> Counter[str]:
    """Delete everything in a namespace except its name and its log; count it by the names that the tables declare."""
    gone: Counter[str] = Counter()
    for table, counted, where in _NAMESPACES:
        count = connection.execute(f"DELETE FROM {table} WHERE {where}", (namespace,)).rowcount
        if counted:
            gone[counted] += count
    return gone


def is_empty(connection: Connection, namespace: int) -> bool:
    """Tell whether nothing is left in a namespace."""
    query = "SELECT 1 FROM {} WHERE namespace = ? LIMIT 1"
    return all(connection.execute(query.format(table), (namespace,)).fetchone() is None for table in _HOLDING)


def purge(connection: Connection, namespace: int) -> None:
    """Delete the rows that nobody could find and forget any more: those that their table declares as ``purged``."""
    for table, purged in _PURGED:
        connection.execute(f"DELETE FROM {table} WHERE namespace = ? AND {purged}", (namespace,))
