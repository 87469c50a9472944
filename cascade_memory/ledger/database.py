"""What the ledger's statements need of a database. SQLite's connections have it, and so do those of ``postgres``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, cast


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""
        ...

    @property
    def description(self) -> Any:
        """The name of each column, first in its tuple."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all other rows."""
        ...

    def close(self) -> None:
        """Let go of the rows that were not read."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Yield the other rows."""
        ...


class Connection(Protocol):
    """A connection; statements are written for SQLite, with ``?`` for each parameter."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor:
        """Run a statement."""
        ...

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]], /) -> Cursor:
        """Run a statement once for each set of parameters."""
        ...


class Remote(Protocol):
    """A connection to a server: statements wait there until a result is needed, so that they are sent together."""

    def clock(self) -> Cursor:
        """Ask for the seconds on the server's clock, which all machines share."""
        ...

    def inserted(self, table: str) -> Any:
        """Return what stands for the key of the row just inserted: later statements take it, and ``int`` needs the answer."""
        ...


def insert(connection: Connection, table: str, sql: str, parameters: Sequence[Any]) -> Any:
    """Insert one row, and return its key (or what stands for it, see ``Remote``)."""
    cursor = connection.execute(sql, parameters)
    if isinstance(connection, sqlite3.Connection):
        return cast("sqlite3.Cursor", cursor).lastrowid
    return cast("Remote", connection).inserted(table)


class EmbedderCheck(Protocol):
    """Vectors of different embedders cannot be compared, so a ledger has those of one."""

    def check(self, *, log: bool = True) -> None:
        """Raise if a write now would not reach the ledger (with ``log``: or its write-ahead log)."""
        ...

    def bind(self, connection: Connection, embedder: str) -> None:
        """Refuse every later write if there are vectors of another embedder."""
        ...

    def claim(self, connection: Connection) -> None:
        """Record the embedder in the transaction that writes the first vector."""
        ...


class Database(Protocol):
    """Hands out connections."""

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        ...

    @property
    def read_only(self) -> str | None:
        """The reason why nothing can be written now; None if writing is possible."""
        ...

    @property
    def belonging(self) -> EmbedderCheck:
        """Checks that it still has the embedder with which it was opened."""
        ...

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Return a connection all of whose statements see one consistent state."""
        ...

    def read(self) -> AbstractContextManager[Connection]:
        """Return a connection to read with; each statement sees one consistent state."""
        ...

    def write(self, *, durable: bool, brings_vectors: bool = False) -> AbstractContextManager[Connection]:
        """Return a connection inside a transaction: committed at the end, rolled back on any error."""
        ...

    def vacuum(self) -> bool:
        """Give back the room of deleted rows; return whether nothing of them is left in the file."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
