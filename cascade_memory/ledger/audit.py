"""Checks every row of a ledger for invalid values. Uses bounded memory and a few microseconds per row."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger import rules
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.declaring import INTEGER, TEXT, Column, Table, whole
from cascade_memory.ledger.facts import fact
from cascade_memory.ledger.schema import RECALL, TABLES

# SQLite makes this table itself, and somebody may have edited it.
_COUNTERS = Table("sqlite_sequence", (Column("name", TEXT, key=True), Column("seq", INTEGER, whole())))

_OF_VECTORS = {table.name for table in TABLES if rules.VECTOR in table.columns}


@dataclass(frozen=True, slots=True)
class Fault:
    """A row that cannot be used, and the reason."""

    table: str
    key: Any
    reason: str

    def __str__(self) -> str:
        """Name the row and the reason."""
        return f"{self.table} {self.key!r}: {self.reason}"


class Undecodable(str):
    """A text that is not UTF-8; every rule rejects it."""

    raw: bytes


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        text = Undecodable(raw.decode("utf-8", "replace"))
        text.raw = raw
        return text


@interruptible
def as_stored(connection: Connection) -> Generator[None, None, None]:
    """Inside the ``with`` block, read texts that are not UTF-8 as ``Undecodable`` instead of failing.

    Databases other than SQLite store no such texts: for them, nothing changes.
    """
    if not isinstance(connection, sqlite3.Connection):
        yield
        return
    before = connection.text_factory
    try:
        connection.text_factory = _text
        yield
    finally:
        connection.text_factory = before


def first_fault(connection: Connection) -> Fault | None:
    """Return the first row that cannot be used, or None."""
    return next(iter(faults(connection, 1)), None)


def faults(connection: Connection, limit: int) -> list[Fault]:
    """Return up to ``limit`` rows that cannot be used."""
    found: list[Fault] = []
    with as_stored(connection):
        for fault in _all(connection):
            found.append(fault)
            if len(found) == limit:
                break
    return found


def _all(connection: Connection) -> Iterator[Fault]:
    there, checking = _tables(connection), Checking(connection)
    for table in (_COUNTERS, *TABLES):
        if table.name in there:
            yield from _rows(connection, table, checking)
    yield from contradictions(connection)


class Checking:
    """Checks rows against the declarations of their tables, and vectors against the length that they have in this ledger."""

    def __init__(self, connection: Connection) -> None:
        self._dimension = _dimension(connection)
        self._encodes = not isinstance(connection, sqlite3.Connection)  # the values of metadata, for which it has other rules

    def wrong(self, table: Table, names: Sequence[str], values: Sequence[Any]) -> str | None:
        """Return why a row cannot be used; None if it can."""
        if any(type(value) is Undecodable for value in values):
            broken = next(name for name, value in zip(names, values, strict=True) if type(value) is Undecodable)
            return f"{broken} is not UTF-8"
        row: dict[str, Any] = dict(zip(names, values, strict=True))
        if len(row) < len(table.columns):
            _bring_up(table, row)
        if self._encodes and table.is_of_fields:
            row["value"] = ""
        try:
            table.check(row)
            if table.name in _OF_VECTORS:
                rules.unit_vector(row["vector"], self._dimension)
        except InvalidInput as error:
            return str(error)
        return None


def _bring_up(table: Table, row: dict[str, Any]) -> None:
    """Add to a row of an older version the columns that an upgrade would add, with the values that it would give them."""
    if table is RECALL and "forgot" not in row:
        row["k"], row["forgot"] = rules.k_and_forgot(row["k"])
    for column in table.columns:
        row.setdefault(column.name, column.before)


def contradictions(connection: Connection) -> Iterator[Fault]:
    """Yield rows that contradict rows of other tables."""
    yield from _unsettled(connection)
    yield from _unreferred(connection)


def _tables(connection: Connection) -> set[str]:
    """Return the names of the tables that exist: a file of an older version may lack some."""
    if not isinstance(connection, sqlite3.Connection):
        return {table.name for table in TABLES}
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}


def _rows(connection: Connection, table: Table, checking: Checking) -> Iterator[Fault]:
    cursor = connection.execute(f"SELECT * FROM {table.name}")
    names = [column[0] for column in cursor.description]
    place = names.index(table.called)
    for values in cursor:
        reason = checking.wrong(table, names, values)
        if reason is not None:
            yield Fault(table.name, values[place], reason)


def _dimension(connection: Connection) -> int | None:
    """Return the length of the ledger's vectors; None if it is not known."""
    note = fact(connection, "embedder")
    if note is None:
        first = connection.execute("SELECT length(vector) FROM case_vector LIMIT 1").fetchone()
        return None if first is None else int(first[0] or 0) // 4
    try:
        return rules.embedder_of(note)[1]
    except InvalidInput:
        return None


def _unsettled(connection: Connection) -> Iterator[Fault]:
    """Yield episodes whose status contradicts their outcomes."""
    rows = connection.execute(
        """SELECT key, status, n FROM (SELECT key, status, (SELECT count(*) FROM outcome
             WHERE outcome.episode = episode.key AND withdrawn_at IS NULL) AS n FROM episode) AS counted
           WHERE n <> CASE status WHEN 'settled' THEN 1 ELSE 0 END"""
    )
    for key, status, n in rows:
        yield Fault("episode", key, f"it is {status} and has {n} outcomes that stand")


def _unreferred(connection: Connection) -> Iterator[Fault]:
    """Yield cases whose solution does not exist, and namespaces that have content but no name."""
    for (key,) in connection.execute("SELECT key FROM cases WHERE solution NOT IN (SELECT id FROM solution)"):
        yield Fault("cases", key, "its solution is not among the solutions")
    used = "SELECT namespace FROM cases UNION SELECT namespace FROM episode"
    for (number,) in connection.execute(f"SELECT * FROM ({used}) AS used WHERE namespace NOT IN (SELECT id FROM namespace)"):
        if rules.is_good(rules.NAMESPACE, number, "id"):  # otherwise the rows themselves are reported
            yield Fault("namespace", number, "it holds cases or episodes but has no name")
