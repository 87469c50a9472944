"""A small pool of connections, in which nothing is kept: a transaction pooler may stand between it and the server."""

from __future__ import annotations

import contextlib
import os
import select
import time
import weakref
from collections.abc import Callable, Generator
from typing import Any

import psycopg
from psycopg import adapt
from psycopg_pool import ConnectionPool, PoolTimeout

from cascade_memory.domain.patience import patience_ends
from cascade_memory.errors import MemoryForked, StoreBusy, StoreError
from cascade_memory.ledger.filters import FieldValue
from cascade_memory.ledger.postgres.batch import Latest
from cascade_memory.ledger.postgres.explained import explain, place_of
from cascade_memory.ledger.postgres.fields import encoded
from cascade_memory.ledger.postgres.schema import SCHEMA

_MOST = 8  # connections per process
BUSY = 30.0  # seconds that a write waits for others
_TRUSTED = 20.0  # seconds without use after which a connection is tried before it is used again
_HOW: dict[str, Any] = {
    "autocommit": True,
    "prepare_threshold": None,
    "cursor_factory": psycopg.ClientCursor,
    "connect_timeout": 5,
    "application_name": "cascade-memory",
}


class _Field(adapt.Dumper):
    def dump(self, obj: FieldValue) -> bytes:
        return b"\\x" + encoded(obj.value).hex().encode()

    def quote(self, obj: FieldValue) -> bytes:
        return b"'" + self.dump(obj) + b"'::bytea"


class _Latest(adapt.Dumper):
    def dump(self, obj: Latest) -> bytes:
        return f"currval('{SCHEMA}.{obj.table}_key_seq')".encode()

    quote = dump


class _Number(adapt.Loader):
    """Sums of integers are numeric in PostgreSQL; here they are integers again."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class Pool:
    """Lends connections to one process, and says in a sentence why there is none."""

    def __init__(self, url: str) -> None:
        self._pid, self._url = os.getpid(), url
        self._closed = False
        self.place = place_of(url)
        self._used: weakref.WeakKeyDictionary[psycopg.Connection[Any], float] = weakref.WeakKeyDictionary()
        self._pool = ConnectionPool(
            url,
            min_size=0,
            max_size=_MOST,
            open=False,
            configure=_configured,
            check=self._check,
            max_idle=60.0,
            max_lifetime=1800.0,
            reconnect_timeout=5.0,
            kwargs=_HOW,
        )

    def open(self, prepare: Callable[[psycopg.Connection[Any]], object]) -> None:
        """Let the first connection prepare the database; if there is no such connection, the error says why at once."""
        try:
            with psycopg.connect(self._url, **_HOW) as connection:
                _configured(connection)
                prepare(connection)
        except psycopg.Error as error:
            explain(error, self.place)
        self._pool.open()

    def _check(self, connection: psycopg.Connection[Any]) -> None:
        """Try a connection that the server may have closed: then its socket can be read. This costs no round trip."""
        rested = time.monotonic() - self._used.get(connection, 0.0)
        if rested > _TRUSTED or select.select([connection.fileno()], [], [], 0)[0]:
            ConnectionPool.check_connection(connection)

    @contextlib.contextmanager
    def connection(self) -> Generator[psycopg.Connection[Any], None, None]:
        """Lend a connection; turn errors of the database into sentences."""
        if os.getpid() != self._pid:
            raise MemoryForked("this memory was opened before fork() and cannot be used in the child; open it again there")
        if self._closed:
            raise StoreError("the ledger is closed")
        until = patience_ends()
        try:
            connection = self._pool.getconn(BUSY if until is None else max(0.01, until - time.monotonic()))
        except PoolTimeout as error:
            raise StoreBusy(f"{self.place} gave no connection in time: it cannot be reached, or all are in use") from error
        try:
            yield connection
        except psycopg.Error as error:
            explain(error, self.place)
        finally:
            self._used[connection] = time.monotonic()
            self._pool.putconn(connection)

    def close(self) -> None:
        """Close every connection."""
        if os.getpid() == self._pid and not self._closed:
            self._closed = True
            self._pool.close()


def _configured(connection: psycopg.Connection[Any]) -> None:
    connection.adapters.register_dumper(FieldValue, _Field)
    connection.adapters.register_dumper(Latest, _Latest)
    connection.adapters.register_loader("numeric", _Number)
