"""The protocols of a database for the ledger. The connections of SQLite fulfil them, and those of ``postgres`` do, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeGuard, runtime_checkable


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""
        ...

    @property
    def description(self) -> Any:
        """A tuple for each column; its first element is the name of the column."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...

    def fetchall(self) -> Sequence[Any]:
        """Return all remaining rows. Those of a server may arrive only when they are read, or when the ``with`` block ends."""
        ...

    def close(self) -> None:
        """Discard the rows that were not read."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Yield the remaining rows."""
        ...


class Connection(Protocol):
    """A connection; statements are written for SQLite, with ``?`` for each parameter."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor:
        """Run a statement."""
        ...

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]], /) -> Cursor:
        """Run a statement once for each set of parameters."""
        ...


class HasClock(Protocol):
    """A connection to a server whose clock all machines share."""

    def clock(self) -> tuple[float, str]:
        """Return the seconds on the server's clock, and a name for the clock."""
        ...


def has_clock(connection: object) -> TypeGuard[HasClock]:
    """Say whether a connection is a ``HasClock``; every reward asks this, and ``isinstance`` takes long with a protocol."""
    return hasattr(connection, "clock")


@runtime_checkable
class MayTakeLong(Protocol):
    """A connection to a server that ends a transaction which is idle for long, unless ``take_long`` was called in it."""

    def take_long(self) -> None:
        """Allow the current transaction to be idle for as long as it needs."""
        ...


def take_long(connection: Connection) -> None:
    """Allow the current transaction to be idle for long, for example while an embedder computes vectors for it."""
    if isinstance(connection, MayTakeLong):
        connection.take_long()


class EmbedderCheck(Protocol):
    """Checks that a ledger has vectors of one embedder only: those of different embedders cannot be compared."""

    def check(self, *, log: bool = True) -> None:
        """Raise if a write now would not reach the ledger (with ``log``: or its write-ahead log)."""
        ...

    def bind(self, connection: Connection, embedder: str) -> None:
        """Refuse every later write if there are vectors of another embedder."""
        ...

    def adopt(self, connection: Connection) -> None:
        """Accept the folder's facts as a transaction of this memory has left them; later checks compare with these."""
        ...

    def claim(self, connection: Connection) -> None:
        """Record the embedder in the transaction that writes the first vector."""
        ...


class Database(Protocol):
    """Hands out connections."""

    @property
    def path(self) -> Path | None:
        """The path of the file; None if the database is not a file."""
        ...

    @property
    def read_only(self) -> str | None:
        """The reason why nothing can be written now; None if writing is possible."""
        ...

    @property
    def belonging(self) -> EmbedderCheck:
        """The check that the database still has the embedder with which it was opened."""
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

    def vacuum(self) -> str:
        """Free the space of deleted rows.

        Return a sentence for people that says where bytes of these rows may remain, or an empty text if nowhere.
        """
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
