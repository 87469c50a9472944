"""Whether a ledger is built as this library builds it: a file from elsewhere may bring triggers, views and rules of its own."""

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

# Comments, strings, words and numbers; every other character stands for itself.
_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|\S", re.DOTALL)
_STATISTICS = ("sqlite_stat1", "sqlite_stat4")  # what ANALYZE leaves: no more than advice on how to search
_KINDS = {"trigger": "trigger", "view": "view", "index": "index", "table": "table"}


def check_structure(connection: sqlite3.Connection, version: int, path: str) -> None:
    """Refuse a ledger that holds anything else than the tables and indexes of its version, before a statement runs on it.

    Takes about a millisecond.
    """
    try:
        _refuse_code(connection, path)
        found = _structure(connection) if version == SCHEMA_VERSION else _as_upgraded(connection, version)
        (least,) = connection.execute("SELECT coalesce(min(id), 1) FROM namespace").fetchone()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter where SQLite's own message is no text
        raise StoreCorrupt(
            f"{path} is not built like a ledger of cascade-memory ({error}); restore it from a backup"
        ) from error
    expected = _expected()
    if found != expected:
        wrong = ", ".join(_differences(found, expected))
        raise StoreCorrupt(
            f"{path} is not built like a ledger of cascade-memory: {wrong}; somebody has changed it. Put that right, "
            "or restore it from a backup that you trust"
        )
    if least < 1:
        raise StoreCorrupt(f"{path} has a namespace with the number {least}, which none gets; restore it from a backup")


def _refuse_code(connection: sqlite3.Connection, path: str) -> None:
    """Refuse what would run by itself: triggers, views, virtual tables and columns that are computed."""
    for kind, name, sql in connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall():
        words = _tokens(str(sql))
        strange = kind not in ("table", "index") or words[1:2] == ["virtual"] or "generated" in words
        if strange or not all(isinstance(value, str) for value in (kind, name, sql)):
            what = "virtual table" if words[1:2] == ["virtual"] else _KINDS.get(str(kind), "object")
            raise StoreCorrupt(
                f"{path} has the {what} {str(name)[:100]!r}, which no ledger of cascade-memory has: it could run when the "
                "memory is used. Remove it if you know where it comes from, or restore a backup that you trust"
            )


def _as_upgraded(connection: sqlite3.Connection, version: int) -> Structure:
    """Return how a ledger of an older version will be built after its upgrade: tried out on empty tables elsewhere."""
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
    """Return what each table and index is. The order of columns is left out: one that was added later stands last."""
    found: Structure = {}
    for kind, name, table, sql in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall():
        if name in _STATISTICS or name.startswith("sqlite_autoindex_"):  # the latter follow from their tables
            continue
        if kind == "index":
            found[f"index {name}"] = (table, *_tokens(sql or ""))
        else:
            columns = (row[1:] for row in connection.execute("SELECT * FROM pragma_table_xinfo(?)", (name,)))
            indexes = (row[2:] for row in connection.execute("SELECT * FROM pragma_index_list(?)", (name,)))
            # Sorted: which words there are, whatever their order. A CHECK, a COLLATE or an ON CONFLICT is one too many.
            found[f"table {name}"] = (_sorted(columns), _sorted(indexes), tuple(sorted(_tokens(sql or ""))))
    return found


def _sorted(rows: Iterable[Any]) -> tuple[str, ...]:
    return tuple(sorted(repr(row) for row in rows))


def _tokens(sql: str) -> list[str]:
    return [token.lower() for token in _TOKEN.findall(sql) if not token.startswith(("--", "/*"))]


def _differences(found: Structure, expected: Structure) -> list[str]:
    more = [f"it has the {name[:100]}" for name in found if name not in expected]
    less = [f"it lacks the {name}" for name in expected if name not in found]
    other = [f"its {name} is another one" for name in expected if name in found and found[name] != expected[name]]
    return [*more, *less, *other][:3]
