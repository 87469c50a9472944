"""Checks that a ledger has exactly the tables that this library creates: a file from elsewhere may have triggers or views.

SQLite keeps the statement that made each table and index, and builds the table from it at each opening. So the words of these
statements, in order, say everything about a table: columns, constraints, collations, indexes.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sqlite3
from collections.abc import Iterable
from typing import Any, TypeAlias

from cascade_memory.domain.validation import GREATEST
from cascade_memory.errors import StoreCorrupt
from cascade_memory.ledger.declaring import Table
from cascade_memory.ledger.facts import check_needed
from cascade_memory.ledger.schema import SCHEMA_VERSION, STATEMENTS, TABLES, lacking
from cascade_memory.ledger.upgrade import STEPS

# By kind and name: the table, and the words of the statement; none for an index that SQLite makes from a constraint.
Structure: TypeAlias = dict[tuple[str, str], tuple[str, tuple[str, ...]]]
_Statement: TypeAlias = tuple[Any, Any, Any, int, Any]  # of a row that SQLite itself did not write

# A token is a comment, a string, a word or a number; every other character is a token by itself. Only of ASCII: in a statement,
# SQLite takes no other character for a space.
_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|\S", re.DOTALL | re.ASCII)
# Tables that ANALYZE creates: they only help SQLite to plan queries.
STATISTICS = {
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
}
_KINDS = {"trigger": "trigger", "view": "view", "index": "index", "table": "table"}
_ROWS = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master"
_TOO_LONG = 20_000  # bytes of a statement or a name
_LONGEST = (
    "SELECT coalesce(max(max(length(CAST(coalesce(sql, '') AS BLOB)), length(CAST(name AS BLOB)))), 0) FROM sqlite_master"
)
_TABLES = {table.name: table for table in TABLES}
_ADDED = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+)")


def check_structure(connection: sqlite3.Connection, version: int, path: str) -> None:
    """Raise if a ledger has anything else than the tables and indexes of its version.

    It is called before any other statement runs on the ledger, and takes about a millisecond.
    """
    try:
        rows = _statements(connection, path)
        found = _structure(rows) if version == SCHEMA_VERSION else _as_upgraded(rows, version)
        check_needed(connection)
        ends = connection.execute("SELECT coalesce(min(id), 1), coalesce(max(id), 1) FROM namespace").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter if SQLite's own message is not UTF-8
        raise StoreCorrupt(
            f"{path} does not have the structure of a cascade-memory ledger ({error}); restore it from a backup"
        ) from error
    expected = _expected()
    found = _with_added(found, expected[0])
    if found not in expected:
        wrong = ", ".join(min((_differences(found, one) for one in expected), key=len)[:3])
        raise StoreCorrupt(
            f"{path} does not have the structure of a cascade-memory ledger: {wrong}. Somebody has changed it, or a "
            "version with other capabilities has made it: undo that, use that version, or restore a backup that you trust"
        )
    for number in ends:
        if type(number) is not int or not 1 <= number <= GREATEST:
            raise StoreCorrupt(f"{path} has a namespace with the invalid number {number}; restore it from a backup")


def _statements(connection: sqlite3.Connection, path: str) -> list[_Statement]:
    """Return the statement that made each table and index.

    Raise for anything that would run by itself (a trigger, a view, a virtual table or a computed column), and for what SQLite
    cannot have written.
    """
    if connection.execute(_LONGEST).fetchone()[0] > _TOO_LONG:
        raise sqlite3.DatabaseError("the statement that made one of its tables is too long")
    rows: list[_Statement] = connection.execute(_ROWS).fetchall()
    for kind, name, table, _, sql in rows:
        words = tokens(str(sql or "").lower())
        strange = (
            kind not in ("table", "index") or words[1:2] not in ([], ["table"], ["index"], ["unique"]) or "generated" in words
        )
        if strange or not all(isinstance(value, str) for value in (kind, name, table, sql or "")):
            what = "virtual table" if words[1:2] == ["virtual"] else _KINDS.get(str(kind), "object")
            raise StoreCorrupt(
                f"{path} has the {what} {str(name)[:100]!r}, which is not part of a cascade-memory ledger and could run when "
                "the memory is used. Remove it if you know where it comes from, or restore a backup that you trust"
            )
    roots = {root for _, _, _, root, _ in rows if type(root) is int and root > 1}
    if not len(rows) == len(roots) == len({(kind, name) for kind, name, _, _, _ in rows}):
        raise sqlite3.DatabaseError("two of its tables are one, or one is nowhere")
    return rows


def _as_upgraded(rows: Iterable[_Statement], version: int) -> Structure:
    """Return the structure that a ledger of an older version will have after its upgrade, tried on empty tables in RAM."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as trial:
        trial.execute("PRAGMA trusted_schema = OFF")
        for _, name, _, _, sql in rows:
            if sql is not None and not name.startswith("sqlite_"):
                trial.execute(sql)
        if _structure(trial.execute(_ROWS)) != _structure(rows):
            raise sqlite3.DatabaseError("a table or an index is not what its statement says")
        for step in range(version, SCHEMA_VERSION):
            for statement in STEPS.get(step, ()):
                trial.execute(statement)
        return _structure(trial.execute(_ROWS))


@functools.lru_cache(maxsize=1)
def _expected() -> tuple[Structure, ...]:
    """Return every structure that a ledger can have.

    The structures differ by the version that made the ledger, since upgrades add columns at the end.
    """
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        for statement in STATEMENTS:
            new.execute(statement)
        fresh = _structure(new.execute(_ROWS))
    found = [fresh]
    for made in STEPS:
        grown: dict[str, Table] = {}
        for match in (_ADDED.match(statement) for step in STEPS if step >= made for statement in STEPS[step]):
            if match:
                grown[match[1]] = grown.get(match[1], _TABLES[match[1]]).with_last(match[2])
        as_grown = {("table", name): (name, tuple(tokens(table.statements[0]))) for name, table in grown.items()}
        if {**fresh, **as_grown} not in found:
            found.append({**fresh, **as_grown})
    return tuple(found)


def _with_added(found: Structure, fresh: Structure) -> Structure:
    """Return a structure with the tables of capabilities that the ledger lacks: they are created right after this check."""
    new = {table.name for table in lacking([name for kind, name in found if kind == "table"])}
    return {**{key: made for key, made in fresh.items() if made[0] in new}, **found}


def _structure(rows: Iterable[_Statement]) -> Structure:
    own = ((kind, name, table, sql) for kind, name, table, _, sql in rows if STATISTICS.get(name, "") != sql)
    return {(kind, name): (table, tuple(tokens(sql or ""))) for kind, name, table, sql in own}


def tokens(sql: str) -> list[str]:
    """Split a statement into its words and signs, without comments.

    >>> tokens("id INTEGER -- unique")
    ['id', 'INTEGER']
    """
    return [token for token in _TOKEN.findall(sql) if not token.startswith(("--", "/*"))]


def _differences(found: Structure, expected: Structure) -> list[str]:
    more = [f"it has the unexpected {kind} {name[:100]}" for kind, name in found if (kind, name) not in expected]
    less = [f"it lacks the {kind} {name}" for kind, name in expected if (kind, name) not in found]
    other = [
        f"its {kind} {name} was changed"
        for kind, name in expected
        if found.get((kind, name), ()) not in (expected[kind, name], ())
    ]
    return [*more, *less, *other]
