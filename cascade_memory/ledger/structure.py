"""Checks that a ledger has exactly the tables that this library creates: a file from elsewhere may have triggers or views."""

from __future__ import annotations

import contextlib
import functools
import re
import sqlite3
from collections.abc import Iterable
from typing import Any, TypeAlias

from cascade_memory.errors import StoreCorrupt
from cascade_memory.ledger.schema import SCHEMA_VERSION, TABLES
from cascade_memory.ledger.upgrade import STEPS

Structure: TypeAlias = dict[str, tuple[Any, ...]]

# A token is a comment, a string, a word or a number; every other character is a token by itself.
_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|\S", re.DOTALL)
_STATISTICS = ("sqlite_stat1", "sqlite_stat4")  # tables that ANALYZE creates: they only help SQLite to plan queries
_KINDS = {"trigger": "trigger", "view": "view", "index": "index", "table": "table"}


def check_structure(connection: sqlite3.Connection, version: int, path: str) -> None:
    """Raise if a ledger has anything else than the tables and indexes of its version.

    It is called before any other statement runs on the ledger, and takes about a millisecond.
    """
    try:
        _refuse_code(connection, path)
        found = _structure(connection) if version == SCHEMA_VERSION else _as_upgraded(connection, version)
        (least,) = connection.execute("SELECT coalesce(min(id), 1) FROM namespace").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter if SQLite's own message is not UTF-8
        raise StoreCorrupt(
            f"{path} does not have the structure of a cascade-memory ledger ({error}); restore it from a backup"
        ) from error
    expected = _expected()
    if found != expected:
        wrong = ", ".join(_differences(found, expected))
        raise StoreCorrupt(
            f"{path} does not have the structure of a cascade-memory ledger: {wrong}. Somebody has changed it: undo that "
            "change, or restore a backup that you trust"
        )
    if least < 1:
        raise StoreCorrupt(f"{path} has a namespace with the invalid number {least}; restore it from a backup")


def _refuse_code(connection: sqlite3.Connection, path: str) -> None:
    """Raise if the file has anything that would run by itself: a trigger, a view, a virtual table or a computed column."""
    for kind, name, sql in connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall():
        words = _tokens(str(sql))
        strange = kind not in ("table", "index") or words[1:2] == ["virtual"] or "generated" in words
        if strange or not all(isinstance(value, str) for value in (kind, name, sql)):
            what = "virtual table" if words[1:2] == ["virtual"] else _KINDS.get(str(kind), "object")
            raise StoreCorrupt(
                f"{path} has the {what} {str(name)[:100]!r}, which is not part of a cascade-memory ledger and could run when "
                "the memory is used. Remove it if you know where it comes from, or restore a backup that you trust"
            )


def _as_upgraded(connection: sqlite3.Connection, version: int) -> Structure:
    """Return the structure that a ledger of an older version will have after its upgrade, tried on empty tables in RAM."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as trial:
        trial.execute("PRAGMA trusted_schema = OFF")
        rows = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
        for (sql,) in rows.fetchall():
            trial.execute(sql)
        for step in range(version, SCHEMA_VERSION):
            for statement in STEPS.get(step, ()):
                trial.execute(statement)
        return _structure(trial)


@functools.lru_cache(maxsize=1)
def _expected() -> Structure:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        fresh.executescript(TABLES)
        return _structure(fresh)


def _structure(connection: sqlite3.Connection) -> Structure:
    """Return a description of each table and index. It ignores the order of columns, since upgrades add columns at the end."""
    found: Structure = {}
    for kind, name, table, sql in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall():
        if name in _STATISTICS or name.startswith("sqlite_autoindex_"):  # SQLite makes the latter from the tables
            continue
        if kind == "index":
            found[f"index {name}"] = (table, *_tokens(sql or ""))
        else:
            columns = (row[1:] for row in connection.execute("SELECT * FROM pragma_table_xinfo(?)", (name,)))
            indexes = (row[2:] for row in connection.execute("SELECT * FROM pragma_index_list(?)", (name,)))
            # Sorted words still reveal a CHECK, a COLLATE or an ON CONFLICT that was added.
            found[f"table {name}"] = (_sorted(columns), _sorted(indexes), tuple(sorted(_tokens(sql or ""))))
    return found


def _sorted(rows: Iterable[Any]) -> tuple[str, ...]:
    return tuple(sorted(repr(row) for row in rows))


def _tokens(sql: str) -> list[str]:
    return [token.lower() for token in _TOKEN.findall(sql) if not token.startswith(("--", "/*"))]


def _differences(found: Structure, expected: Structure) -> list[str]:
    more = [f"it has the unexpected {name[:100]}" for name in found if name not in expected]
    less = [f"it lacks the {name}" for name in expected if name not in found]
    other = [f"its {name} was changed" for name in expected if name in found and found[name] != expected[name]]
    return [*more, *less, *other][:3]
