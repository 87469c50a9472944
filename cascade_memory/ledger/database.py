"""What the ledger's statements need of a database. SQLite's connections have it, and so do those of ``postgres``."""

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
        """The name of each column, first in its tuple."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...

    def fetchall(self) -> Sequence[Any]:
        """Return all other rows. Rows of a server may arrive only when they are looked at, or at the end of the block."""
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


class HasClock(Protocol):
    """A connection to a server whose clock all machines share."""

    def clock(self) -> tuple[float, str]:
        """Return the seconds on that clock, and a name for it."""
        ...


def has_clock(connection: object) -> TypeGuard[HasClock]:
    """Say whether a connection has such a clock; every reward asks, and ``isinstance`` takes long with a protocol."""
    return hasattr(connection, "clock")


@runtime_checkable
class MayTakeLong(Protocol):
    """A connection whose transactions are ended if they rest, unless they say that they will."""

    def take_long(self) -> None:
        """Say so."""
        ...


def take_long(connection: Connection) -> None:
    """Say that this transaction may wait for something else, such as an embedder or a file, while all others wait for it."""
    if isinstance(connection, MayTakeLong):
        connection.take_long()


class EmbedderCheck(Protocol):
    """Vectors of different embedders cannot be compared, so a ledger has those of one."""

    def check(self, *, log: bool = True) -> None:
        """Raise if a write now would not reach the ledger (with ``log``: or its write-ahead log)."""
        ...

    def bind(self, connection: Connection, embedder: str) -> None:
        """Refuse every later write if there are vectors of another embedder."""
        ...

    def adopt(self, connection: Connection) -> None:
        """Go on with the folder's facts as a transaction of this memory has left them."""
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

    def vacuum(self) -> str:
        """Give back the room of deleted rows; return in words what is left of them, or nothing."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
