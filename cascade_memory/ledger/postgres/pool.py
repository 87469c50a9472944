"""A small pool of connections, in which nothing is kept: a transaction pooler may stand between it and the server."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg import adapt
from psycopg.conninfo import conninfo_to_dict

from cascade_memory.domain.patience import patience_ends
from cascade_memory.errors import MemoryForked, StoreBusy, StoreError
from cascade_memory.ledger.filters import FieldValue
from cascade_memory.ledger.postgres.batch import Latest
from cascade_memory.ledger.postgres.explained import explain, place_of
from cascade_memory.ledger.postgres.fields import encoded
from cascade_memory.ledger.postgres.schema import SCHEMA
from cascade_memory.ledger.postgres.turns import Turns

_MOST = 8  # connections per process
BUSY = 30.0  # seconds that a write waits for others
_AT_LEAST = 0.2  # seconds that everybody waits for a connection: on a slow machine, patience may end before anything is wrong
_TRUSTED = 20.0  # seconds without use after which a connection is tried before it is used again
_RESTS = 60.0  # seconds without use after which it is closed
_LIVES = 1800.0  # seconds after which it is closed in any case, since something on the way may forget it
_CONNECTS = 5  # seconds to connect
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
    """Sums of integers are numeric in PostgreSQL; here they are integers again."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class Pool:
    """Lends connections to one process, and says in a sentence why there is none.

    psycopg's own pool connects in the background, waits longer after each failure and does not say why: after an outage a
    recall would miss its deadline for as long as that takes. Here whoever needs a connection makes it.
    """

    def __init__(self, url: str) -> None:
        self._pid, self._url = os.getpid(), url
        self.place = place_of(url)
        said = conninfo_to_dict(url)
        self._how = HOW | {name: value for name, value in _VANISHED.items() if name not in said}
        self._closed = False
        self._room = Turns(_MOST)
        self._lock = threading.Lock()
        self._idle: list[_Resting] = []  # the one used last is at the end

    @contextlib.contextmanager
    def connection(self) -> Generator[psycopg.Connection[Any], None, None]:
        """Lend a connection; turn errors of the database into sentences."""
        self.check()
        until = patience_ends()
        with self._room.entered(BUSY if until is None else max(_AT_LEAST, until - time.monotonic())) as came_in:
            if not came_in:
                raise StoreBusy(
                    f"all {_MOST} connections of this process to {self.place} were in use for too long, and "
                    f"{self._room.waiting} other threads wait for one; is it stuck?"
                )
            try:
                taken = self._take()
                try:
                    yield taken.connection
                finally:
                    self._put_back(taken)
            except psycopg.Error as error:
                explain(error, self.place)

    def check(self) -> None:
        """Raise in a child of the process that opened it: they would talk to the server at once over one connection."""
        if os.getpid() != self._pid:
            raise MemoryForked("this memory was opened before fork() and cannot be used in the child; open it again there")

    def _take(self) -> _Resting:
        while True:
            with self._lock:
                if self._closed:
                    raise StoreError("the ledger is closed")
                resting = self._idle.pop() if self._idle else None
            if resting is None:
                connection = psycopg.connect(self._url, **self._how)
                configured(connection)
                return _Resting(connection, born=time.monotonic())
            if resting.is_alive():
                return resting
            resting.connection.close()

    def _put_back(self, used: _Resting) -> None:
        used.since = now = time.monotonic()
        idle = used.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            going = [one for one in self._idle if now - one.since > _RESTS]
            self._idle = [one for one in self._idle if now - one.since <= _RESTS]
            if idle and not self._closed and now - used.born < _LIVES:
                self._idle.append(used)
            else:
                going.append(used)
        for one in going:
            one.connection.close()

    def close(self) -> None:
        """Close every connection; those in use, when they are given back."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = True
            going, self._idle = self._idle, []
        for one in going:
            one.connection.close()


class _Resting:
    """A connection between two uses."""

    def __init__(self, connection: psycopg.Connection[Any], born: float) -> None:
        self.connection, self.born, self.since = connection, born, born

    def is_alive(self) -> bool:
        """Try it if the server may have closed it: then its socket can be read. Otherwise this costs no round trip."""
        if self.connection.closed:
            return False
        if time.monotonic() - self.since < _TRUSTED and not self._has_news():
            return True
        try:
            self.connection.execute("")
        except psycopg.Error:
            return False
        return True

    def _has_news(self) -> bool:
        with selectors.DefaultSelector() as selector:  # select() itself knows only the first 1,024 open files
            selector.register(self.connection.fileno(), selectors.EVENT_READ)
            return bool(selector.select(0))


def configured(connection: psycopg.Connection[Any]) -> None:
    """Teach a connection how the values of a ledger are written and read."""
    connection.adapters.register_dumper(FieldValue, _Field)
    connection.adapters.register_dumper(Latest, _Latest)
    connection.adapters.register_loader("numeric", _Number)
