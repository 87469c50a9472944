"""Reads a table in pages, so that a ledger of any size needs a bounded amount of memory, and computes a digest of the rows."""

from __future__ import annotations

import hashlib
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.declaring import Table

Row: TypeAlias = "tuple[Any, ...]"

_FIRST, _MOST = 50, 500  # rows; a statement of SQLite takes 32,766 parameters
_SIZE = 16  # bytes of a digest
_LARGE = 4 * 2**20  # bytes of a page above which the next one is smaller


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
