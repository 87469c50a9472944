"""The connections of a ledger in PostgreSQL. Nothing is kept in a session, so a transaction pooler may stand in between."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import adapt, sql
from psycopg_pool import ConnectionPool, PoolTimeout

from cascade_memory.domain.patience import patience_ends
from cascade_memory.errors import MemoryForked, StoreBusy, StoreError
from cascade_memory.ledger.belonging import Belonging
from cascade_memory.ledger.filters import FieldValue
from cascade_memory.ledger.postgres.dialect import bound
from cascade_memory.ledger.postgres.explained import explain, place_of
from cascade_memory.ledger.postgres.fields import encoded
from cascade_memory.ledger.postgres.migration import migrate

_MOST = 8  # connections per process
_BUSY = 30.0  # seconds that a write waits for others
# All writers of a ledger take turns, as in SQLite: so the lines of its log are numbered in the order of their commits, and a
# reader that goes on from a line misses none. The lock belongs to the transaction, and ends with it whatever happens.
TURN = f"SELECT pg_advisory_xact_lock({0x43415343})"


class _Field(adapt.Dumper):
    def dump(self, obj: FieldValue) -> bytes:
        return b"\\x" + encoded(obj.value).hex().encode()

    def quote(self, obj: FieldValue) -> bytes:
        return b"'" + self.dump(obj) + b"'::bytea"


class _Number(adapt.Loader):
    """Sums of integers are numeric in PostgreSQL; here they are integers again."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class Translating:
    """A connection that takes statements as they are written for SQLite."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        """Run a statement."""
        text, values = bound(statement.replace("UPDATE OR IGNORE", "UPDATE"), parameters)
        if "UPDATE OR IGNORE" not in statement:
            return self._connection.execute(sql.SQL(text), values)  # type: ignore[arg-type]  # only constants are in the text
        try:
            with self._connection.transaction():
                return self._connection.execute(sql.SQL(text), values)  # type: ignore[arg-type]
        except psycopg.IntegrityError:
            return self._connection.cursor()

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]], /) -> psycopg.Cursor[Any]:
        """Run a statement for each set of parameters."""
        cursor = self._connection.cursor()
        for values in parameters:
            text, values = bound(statement, values)
            cursor.execute(sql.SQL(text), values)  # type: ignore[arg-type]
        return cursor

    def clock(self) -> tuple[float, str]:
        """Return the time of the server, which all machines share, and a name for its clock."""
        row = self._connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        assert row is not None
        return float(row[0]), "server"


class PostgresConnections:
    """Hands out connections of a small pool, which is opened at the first use."""

    path = None
    read_only: str | None = None

    def __init__(self, url: str) -> None:
        self._pid = os.getpid()
        self._closed = False
        self.place = place_of(url)
        self.belonging = Belonging(None)
        self._pool = ConnectionPool(
            url,
            min_size=0,
            max_size=_MOST,
            open=False,
            configure=_configured,
            check=ConnectionPool.check_connection,
            max_idle=60.0,
            kwargs={"autocommit": True, "prepare_threshold": None, "cursor_factory": psycopg.ClientCursor},
        )
        try:
            self._pool.open()
            with self._connection() as connection:
                migrate(connection)
        except BaseException:
            self._pool.close()
            raise

    @contextlib.contextmanager
    def _connection(self) -> Generator[psycopg.Connection[Any], None, None]:
        if os.getpid() != self._pid:
            raise MemoryForked("this memory was opened before fork() and cannot be used in the child; open it again there")
        if self._closed:
            raise StoreError("the ledger is closed")
        until = patience_ends()
        try:
            connection = self._pool.getconn(_BUSY if until is None else max(0.01, until - time.monotonic()))
        except PoolTimeout as error:
            raise StoreBusy(f"{self.place} gave no connection in time: it cannot be reached, or all are in use") from error
        try:
            yield connection
        except psycopg.Error as error:
            explain(error, self.place)
        finally:
            self._pool.putconn(connection)

    @contextlib.contextmanager
    def read(self) -> Generator[Translating, None, None]:
        """Yield a connection that sees one consistent state per statement."""
        with self._connection() as connection:
            yield Translating(connection)

    @contextlib.contextmanager
    def snapshot(self) -> Generator[Translating, None, None]:
        """Yield a connection all of whose statements see one consistent state."""
        with self._connection() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield Translating(connection)

    @contextlib.contextmanager
    def write(self, *, durable: bool, brings_vectors: bool = False) -> Generator[Translating, None, None]:
        """Yield a connection inside a transaction; only a durable one waits until the server has written it to its disk."""
        with self._connection() as connection, connection.transaction():
            until = patience_ends()
            wait = _BUSY if until is None else min(_BUSY, max(0.01, until - time.monotonic()))
            commit = "on" if durable else "off"
            limits = f"SET LOCAL lock_timeout = {int(1000 * wait) or 1}; SET LOCAL synchronous_commit = {commit}"
            connection.execute(sql.SQL(f"{limits}; {TURN}"))  # type: ignore[arg-type]  # one round trip
            writer = Translating(connection)
            self.belonging.check_facts(writer, claims=brings_vectors)
            yield writer

    def vacuum(self) -> bool:
        """Let the server reuse the room of deleted rows. What is left of them in its log and its backups is not ours."""
        with self._connection() as connection:
            for table in _vacuumed(connection):
                connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier("cascade_memory", table)))
        return True

    def close(self) -> None:
        """Close every connection. Everything committed stays."""
        if os.getpid() == self._pid and not self._closed:
            self._closed = True
            self._pool.close()


def _configured(connection: psycopg.Connection[Any]) -> None:
    connection.adapters.register_dumper(FieldValue, _Field)
    connection.adapters.register_loader("numeric", _Number)


def _vacuumed(connection: psycopg.Connection[Any]) -> Iterator[str]:
    query = "SELECT tablename FROM pg_tables WHERE schemaname = 'cascade_memory'"
    yield from (name for (name,) in connection.execute(query).fetchall())
