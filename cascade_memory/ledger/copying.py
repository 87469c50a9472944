"""Copies a ledger from one kind of database into another, row by row, and checks that the copy is equal.

Tables are read in pages, so that a ledger of any size needs a bounded amount of memory.

PostgreSQL's encoding of a value of metadata is made for searching: it does not tell 1 from 1.0, and a long text is cut. So on
the way back to SQLite, a number or a long text is looked up in the metadata from which it was made.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast

from cascade_memory.errors import InvalidInput, StoreCorrupt
from cascade_memory.ledger.audit import Checking, Fault, as_stored, contradictions
from cascade_memory.ledger.belonging import begin_generation
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.declaring import Table
from cascade_memory.ledger.filters import FieldValue, encode_value
from cascade_memory.ledger.numbering import FORGOTTEN, go_on_after, greatest_keys
from cascade_memory.ledger.postgres.dialect import decoded, encoded
from cascade_memory.ledger.redeeming import is_own
from cascade_memory.ledger.rows import KEYS, fetched_for
from cascade_memory.ledger.schema import TABLES

Row: TypeAlias = "tuple[Any, ...]"
_FIRST, _MOST = 50, 500  # rows; a statement of SQLite takes 32,766 parameters
_SIZE = 16  # bytes of a digest
_LARGE = 4 * 2**20  # bytes of a page above which the next one is smaller
_AT_VALUE, _AT_NAME, _AT_OWNER = 2, 1, 3  # positions in each table of fields
# Where the metadata of a row's owner are. Outcomes of old ledgers have none of their own, but their case has the same.
_OWNERS = {
    "field": f"SELECT key, metadata FROM case_text WHERE key IN ({KEYS})",
    "expired_field": f"SELECT key, record FROM expired WHERE key IN ({KEYS})",
    "outcome_field": f"""SELECT outcome.key, coalesce(outcome.metadata, case_text.metadata)
                         FROM outcome LEFT JOIN case_text ON case_text.key = outcome.cases_key WHERE outcome.key IN ({KEYS})""",
    "addition_field": f"SELECT key, metadata FROM addition WHERE key IN ({KEYS})",
    "episode_field": f"SELECT key, metadata FROM episode WHERE key IN ({KEYS})",
}
# Shows how far it is: takes pages, what is being done, and the number of rows.
Shown: TypeAlias = Callable[[Iterable["list[Row]"], str, int], Iterable["list[Row]"]]
_STAY = ("identity", "generation", FORGOTTEN)  # facts that each memory has for itself: by them it is told from its copies


def pages(connection: Connection, table: Table) -> Iterator[list[Row]]:
    """Yield all rows in the order of their key, a page at a time."""
    key = ", ".join(table.keys)
    after = f"WHERE ({key}) > ({', '.join('?' * len(table.keys))})"
    size, last = _FIRST, None
    while True:
        where = "" if last is None else after
        query = f"SELECT {table.listed} FROM {table.name} {where} ORDER BY {key} LIMIT {size}"
        rows: list[Row] = [tuple(row) for row in connection.execute(query, last or ()).fetchall()]
        if rows:
            yield rows
        if len(rows) < size:
            return
        last = tuple(rows[-1][place] for place in table.places)
        size = max(1, size // 2) if _bytes(rows) > _LARGE else min(_MOST, size * 2)


def _bytes(rows: Sequence[Row]) -> int:
    return sum(sys.getsizeof(value) for row in rows for value in row)


def insert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows with one statement."""
    marks = ", ".join([f"({', '.join('?' * len(table.names))})"] * len(rows))
    values = [value for row in rows for value in row]
    connection.execute(f"INSERT INTO {table.name} ({table.listed}) VALUES {marks}", values)


class Sum:
    """Counts rows, and adds up their digests: sums of the same rows are equal, whatever the order of the rows.

    >>> one, other = Sum(), Sum()
    >>> for row in ((1, "a"), (2, None)):
    ...     one.add(row)
    >>> for row in ((2, None), (1, "a")):
    ...     other.add(row)
    >>> one == other, one.rows
    (True, 2)
    """

    def __init__(self) -> None:
        self.rows, self._total = 0, 0

    def add(self, row: Sequence[Any]) -> None:
        """Add a row."""
        digest = hashlib.blake2b(b"".join(map(_written, row)), digest_size=_SIZE).digest()
        self.rows += 1
        self._total = (self._total + int.from_bytes(digest, "big")) % 256**_SIZE

    def __eq__(self, other: object) -> bool:
        """Say whether the same rows were added to both sums, in any order."""
        return isinstance(other, Sum) and (self.rows, self._total) == (other.rows, other._total)

    __hash__ = None  # type: ignore[assignment]  # it changes


def _written(value: object) -> bytes:
    if value is None:
        return b"-"
    if isinstance(value, float):
        return b"f" + struct.pack(">d", value)
    raw = value if isinstance(value, bytes) else str(value).encode()
    return type(value).__name__[:1].encode() + struct.pack(">Q", len(raw)) + raw


def comparable(connection: Connection, row: Row) -> Row:
    """Return a row of metadata fields with its value encoded, so that the rows of both databases can be compared."""
    value = row[_AT_VALUE]
    raw = encoded(value) if isinstance(connection, sqlite3.Connection) else bytes(value)
    return (*row[:_AT_VALUE], raw, *row[_AT_VALUE + 1 :])


def portable(connection: Connection, table: Table, rows: Sequence[Row]) -> list[Row] | Fault:
    """Return rows of metadata fields with values that every database can store.

    If a long text was cut, and its rest is nowhere else, return a ``Fault`` that names the row.
    """
    if isinstance(connection, sqlite3.Connection):
        return [(*row[:_AT_VALUE], FieldValue(row[_AT_VALUE]), *row[_AT_VALUE + 1 :]) for row in rows]
    unsure = sorted({row[_AT_OWNER] for row in rows if row[_AT_VALUE][:1] == b"n" or decoded(row[_AT_VALUE]) is None})
    given = {key: _metadata(table, text) for key, text in fetched_for(connection, _OWNERS[table.name], unsure)}
    found: list[Row] = []
    for row in rows:
        value = _given(given.get(row[_AT_OWNER], {}).get(row[_AT_NAME]), row[_AT_VALUE])
        value = decoded(row[_AT_VALUE]) if value is None else value
        if value is None:
            return Fault(table.name, row[_AT_OWNER], f"the long text of the field {row[_AT_NAME][:80]!r} is nowhere else")
        found.append((*row[:_AT_VALUE], FieldValue(value), *row[_AT_VALUE + 1 :]))
    return found


def _metadata(table: Table, text: str | None) -> dict[str, Any]:
    found = json.loads(text or "{}")
    return cast("dict[str, Any]", json.loads(found["metadata"]) if table.name == "expired_field" else found)


def _given(metadata: Any, raw: bytes) -> str | float | bytes | None:
    """Return the value, or the one of a list of values, whose encoding is ``raw``; None if there is none."""
    for one in cast("list[Any]", metadata) if isinstance(metadata, list) else [] if metadata is None else [metadata]:
        value = encode_value(one)
        if encoded(value) == raw:
            return value
    return None


class Copying:
    """One move of a ledger: the copying of all its rows, and the comparison of the two databases.

    ``places`` are the names of the source and of the target, for messages to people. ``show`` gets the pages of rows, and shows
    the progress.
    """

    def __init__(self, source: Connection, target: Connection, places: tuple[str, str], show: Shown) -> None:
        self._source, self._target, self._places, self._show = source, target, places, show

    def run(self) -> dict[str, int]:
        """Copy everything, inside the transactions of the caller; return the number of rows of each table."""
        self._refuse_unless_empty()
        with as_stored(self._source):
            for fault in contradictions(self._source):
                raise self._damaged(fault)
            checking = Checking(self._source)
            sums = {table.name: self._copied(table, checking) for table in TABLES}
        go_on_after(self._target, greatest_keys(self._source))
        for table in TABLES:
            if self._arrived(table) != sums[table.name]:
                raise StoreCorrupt(
                    f"the rows of {table.name} in {self._places[1]} are not those of {self._places[0]}: nothing was moved. "
                    "Try again, and report this if it happens again"
                )
        begin_generation(self._target)  # whoever has the empty memory open must open it again
        return {name: one.rows for name, one in sums.items()}

    def _refuse_unless_empty(self) -> None:
        for table in TABLES:
            if table.name != "meta" and self._target.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone() is not None:
                raise InvalidInput(
                    f"there is a memory in {self._places[1]} already; nothing was moved. Name a new folder or an empty database"
                )
        self._target.execute("DELETE FROM meta WHERE key <> 'identity'")

    def _damaged(self, fault: Fault) -> StoreCorrupt:
        return StoreCorrupt(
            f"{self._places[0]} holds a row that cannot be moved: {fault}. Nothing was moved; "
            "repair it first: cascade-memory data doctor --fix"
        )

    def _copied(self, table: Table, checking: Checking) -> Sum:
        found, place = Sum(), table.names.index(table.called)
        for rows in self._pages(self._source, table, "moving"):
            for row in rows:
                reason = checking.wrong(table, table.names, row) or _unfit(table, row)
                if reason is not None:
                    raise self._damaged(Fault(table.name, row[place], reason))
                found.add(comparable(self._source, row) if table.is_of_fields else row)
            fit = portable(self._source, table, rows) if table.is_of_fields else rows
            if isinstance(fit, Fault):
                raise self._damaged(fit)
            insert(self._target, table, fit)
        return found

    def _arrived(self, table: Table) -> Sum:
        found = Sum()
        for rows in self._pages(self._target, table, "checking"):
            for row in rows:
                found.add(comparable(self._target, row) if table.is_of_fields else row)
        return found

    def _pages(self, connection: Connection, table: Table, verb: str) -> Iterator[list[Row]]:
        (total,) = connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()
        for rows in self._show(pages(connection, table), f"{verb} {table.name}", int(total)):
            fit = rows if table.name != "meta" else [row for row in rows if not _stays(row[0])]
            if fit:
                yield fit


def _stays(fact: object) -> bool:
    """Say whether a fact (a row of the table ``meta``, here its name) is not copied, because it concerns one database only.

    Examples are the identity of a database, and what a Chroma has received from it.
    """
    return isinstance(fact, str) and (fact in _STAY or fact.startswith("mirror") or is_own(fact))


def _unfit(table: Table, row: Row) -> str | None:
    """Return why a row cannot be stored in another database, whose columns have one type each; None if it can be stored."""
    for column, value in zip(table.columns, row, strict=True):
        if column.type is None or (value is None and column.optional):
            continue
        if type(value) is not column.type:
            return f"{column.name} is no {_TYPES[column.type]}"
        if isinstance(value, str) and "\x00" in value:
            return f"{column.name} contains a NUL character, which PostgreSQL cannot store"
    return None


_TYPES: dict[type, str] = {int: "whole number", float: "number", str: "text", bytes: "array"}
