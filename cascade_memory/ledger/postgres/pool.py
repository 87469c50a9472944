"""A small pool of connections that keep no session state, so a transaction pooler may stand between it and the server."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
import traceback
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import psycopg
from psycopg import adapt, pq
from psycopg.conninfo import conninfo_to_dict

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.waiting import patience_ends
from cascade_memory.errors import MemoryForked, StoreBusy, StoreError
from cascade_memory.ledger.filters import FieldValue
from cascade_memory.ledger.postgres.batch import Latest
from cascade_memory.ledger.postgres.blocks import Held, Sign, block_of, closed_surely
from cascade_memory.ledger.postgres.dialect import SCHEMA, encoded
from cascade_memory.ledger.postgres.explained import explain, place_of
from cascade_memory.ledger.postgres.turns import Turns

_MOST = 8  # connections per process
BUSY = 30.0  # seconds that a write waits for others
_AT_LEAST = 0.2  # seconds that everybody waits for a connection: on a slow machine, patience may end before anything is wrong
_TRUSTED = 20.0  # seconds without use after which a connection is tried before it is used again
_RESTS = 60.0  # seconds without use after which it is closed
_LIVES = 1800.0  # seconds after which it is closed in any case, since something on the way may forget it
_CONNECTS = 5  # seconds to connect
_CANCELS = 1.0  # seconds in which the server is asked to stop a statement
HOW: dict[str, Any] = {
    "autocommit": True,
    "prepare_threshold": None,
    "cursor_factory": psycopg.ClientCursor,
    "connect_timeout": _CONNECTS,
    "application_name": "cascade-memory",
}

# A machine that vanishes without a word is noticed after 15 seconds, not after the hours that the system would wait. A URL may
# say otherwise.
_VANISHED: dict[str, Any] = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 5, "tcp_user_timeout": 15_000}


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
    """Reads numeric values as integers if they have no decimal point: PostgreSQL makes sums of integers numeric."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class Pool:
    """Lends connections to the threads of one process; if it cannot make one, the error says why.

    psycopg's own pool connects in the background, waits longer after each failure and does not say why: after an outage,
    recalls would miss their deadlines during such a wait. Here the thread that needs a connection opens it.
    """

    def __init__(self, url: str) -> None:
        self._pid, self._url = os.getpid(), url
        self.place = place_of(url)
        said = conninfo_to_dict(url)
        self._how = HOW | {name: value for name, value in _VANISHED.items() if name not in said}
        self._closed, self._closing = False, _Loan(self)
        self._room = Turns(_MOST)
        self._lock = threading.Lock()
        self._all: list[_Kept] = []

    @interruptible
    def connection(self) -> Generator[psycopg.Connection[Any], None, None]:
        """Lend a connection; turn errors of the database into errors that say what to do."""
        self.check()
        until = patience_ends()
        with self._room.entered(BUSY if until is None else max(_AT_LEAST, until - time.monotonic())) as came_in:
            if not came_in:
                raise StoreBusy(
                    f"all {_MOST} connections of this process to {self.place} were in use for too long, and "
                    f"{self._room.waiting} other threads wait for one; is it stuck?"
                )
            try:
                with block_of(_Loan(self)) as connection:
                    yield connection
            except psycopg.Error as error:
                explain(error, self.place)

    def check(self) -> None:
        """Raise ``MemoryForked`` in a child of the process with the pool: both would use the same connections at once."""
        if os.getpid() != self._pid:
            raise MemoryForked("this memory was opened before fork() and cannot be used in the child; open it again there")

    def take(self, loan: _Loan) -> psycopg.Connection[Any]:
        """Lend a connection that works, and return it: the idle one that was used last, or a new one."""
        while True:
            with self._lock:
                if self._closed:
                    raise StoreError("the ledger is closed")
                one = max((one for one in self._all if one.loan is None), key=_last_used, default=None)
                if one is not None:
                    one.loan = loan
                else:
                    one = _Kept(loan)
                    self._all.append(one)
            if one.connection is None:
                one.connection = connection = _made(self._url, self._how)
                configured(connection)
                one.is_ready = True
                return connection
            if one.is_alive(one.connection):
                return one.connection
            self._let_go(one)

    def take_back(self, loan: _Loan) -> None:
        """Give a lent connection back to the pool, or close it if it cannot be used again. A second call does nothing."""
        now, going = time.monotonic(), list[_Kept]()
        with self._lock:
            for one in self._all:
                if one.loan is loan and not self._closed and one.is_usable(now):
                    one.since = now
                    one.loan = None
                elif one.loan is loan or (one.loan is None and now - one.since > _RESTS):
                    one.loan = loan
                    going.append(one)
        for one in going:
            self._let_go(one)

    def _let_go(self, one: _Kept) -> None:
        if one.connection is not None:
            end(one.connection)
        with self._lock:
            if one in self._all:
                self._all.remove(one)

    def close(self) -> None:
        """Close every connection; a connection that is in use is closed when it is given back."""
        if os.getpid() != self._pid:
            return
        with block_of(_Closing(self)):
            pass

    def close_idle(self) -> None:
        """Stop lending, and close the connections that are not lent; a call that was interrupted can be repeated."""
        with self._lock:
            self._closed = True
            for one in self._all:
                one.loan = one.loan or self._closing
        self.take_back(self._closing)


class _Kept:
    """A connection of the pool. It is lent while it has a ``loan``: setting this one attribute lends it or gives it back."""

    def __init__(self, loan: _Loan) -> None:
        self.loan: _Loan | None = loan
        self.connection: psycopg.Connection[Any] | None = None
        self.is_ready = False  # its connection knows how the values of a ledger are written and read
        self.born = self.since = time.monotonic()

    def is_usable(self, now: float) -> bool:
        """Say whether the connection is ready and idle (no transaction, no unread results), and not too old."""
        idle = self.connection is not None and _status(self.connection) == pq.TransactionStatus.IDLE
        return idle and self.is_ready and now - self.born < _LIVES

    def is_alive(self, connection: psycopg.Connection[Any]) -> bool:
        """Say whether the connection works.

        An empty statement is sent to find this out if the connection was not used for long, or if its socket has something to
        read: the server may have closed it. Otherwise no round trip is needed.
        """
        if connection.closed:
            return False
        if time.monotonic() - self.since < _TRUSTED and not _has_news(connection):
            return True
        try:
            connection.execute("")
        except psycopg.Error:
            return False
        return True


class _Loan(Held[psycopg.Connection[Any]]):
    """Lends a connection of the pool to one block (see ``blocks``), and takes it back when the block ends."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def take(self, block: Sign) -> psycopg.Connection[Any]:
        del block
        return self._pool.take(self)

    def end(self) -> None:
        self._pool.take_back(self)


class _Closing(Held[None]):
    """Closes all connections that are not lent; as a block (see ``blocks``), it does so even if interrupted."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def take(self, block: Sign) -> None:
        del block
        self.end()

    def give_back(self) -> None:
        """Do nothing: the connections were closed when the block began."""

    def end(self) -> None:
        self._pool.close_idle()


def _last_used(one: _Kept) -> float:
    return one.since


def _status(connection: psycopg.Connection[Any]) -> pq.TransactionStatus:
    return connection.info.transaction_status


def _has_news(connection: psycopg.Connection[Any]) -> bool:
    with selectors.DefaultSelector() as selector:  # select() itself knows only the first 1,024 open files
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


class _Connection(psycopg.Connection[Any]):
    """A connection that does not warn if it is deleted while open, as happens if an interrupt comes while it is made."""

    def __del__(self, *_: Any) -> None:
        if hasattr(self, "pgconn"):
            self.pgconn.finish()


def _made(url: str, how: Mapping[str, Any]) -> psycopg.Connection[Any]:
    try:
        return _Connection.connect(url, **how)
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)  # whoever keeps an interrupt would keep what was made, open
        raise


def connected(url: str) -> AbstractContextManager[psycopg.Connection[Any]]:
    """Return a block with a connection of its own, which belongs to no pool."""
    how: dict[str, Any] = {"autocommit": True, "connect_timeout": _CONNECTS, "cursor_factory": psycopg.ClientCursor}
    return closed_surely(lambda: _made(url, how), end)


def end(connection: psycopg.Connection[Any]) -> None:
    """Close a connection; stop a statement of it that still runs on the server, which might otherwise take effect later."""
    if _status(connection) == pq.TransactionStatus.ACTIVE:
        with contextlib.suppress(psycopg.Error):
            connection.cancel_safe(timeout=_CANCELS)
    connection.close()


def roll_back(connection: psycopg.Connection[Any]) -> None:
    """Roll back the transaction of a connection, if it is in one and no statement is running."""
    if _status(connection) in {pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR}:
        with contextlib.suppress(psycopg.Error):
            connection.execute("ROLLBACK")


def configured(connection: psycopg.Connection[Any]) -> None:
    """Teach a connection how the values of a ledger are written and read."""
    connection.adapters.register_dumper(FieldValue, _Field)
    connection.adapters.register_dumper(Latest, _Latest)
    connection.adapters.register_loader("numeric", _Number)
