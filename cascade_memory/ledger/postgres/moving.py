"""A PostgreSQL database as the source or the target when a ledger is moved."""

from __future__ import annotations

import time
from collections.abc import Generator

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.errors import InvalidInput, StoreError
from cascade_memory.ledger.belonging import EMBEDDER, begin_generation
from cascade_memory.ledger.database import Connection, take_long
from cascade_memory.ledger.postgres.blocks import closed_surely
from cascade_memory.ledger.postgres.explained import place_of
from cascade_memory.ledger.postgres.ledger import PostgresLedger
from cascade_memory.ledger.postgres.snapshot_rows import PostgresSnapshotRows

_OTHERS = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'cascade-memory'
             AND pid NOT IN (?, ?, pg_backend_pid())"""
_LEAVING = 2.0  # seconds: the server lists a connection for a moment after it was closed


class OpenedForMove:
    """A ledger in PostgreSQL that is opened as the source or the target of one move."""

    def __init__(self, url: str) -> None:
        self._url, self.place = url, place_of(url)
        self._turn: Connection | None = None  # its transaction has the lock that each writer needs
        self._others_go_on = False

    @interruptible
    def reading(self, *, while_open: bool) -> Generator[Connection, None, None]:
        """Yield a connection that sees one consistent state. Until the block ends, nobody can write.

        Raise if there are other connections of cascade-memory, unless ``while_open`` is set.
        """
        if not PostgresLedger.exists(self._url):
            raise InvalidInput(f"there is no memory in {self.place}")
        with self._opened() as ledger, ledger.connections.write(durable=False) as turn:
            take_long(turn)
            own = _pid(turn)  # asking for it sends the beginning of the transaction, which takes the lock
            self._turn, self._others_go_on = turn, while_open
            with ledger.connections.snapshot() as connection:
                others = 0 if while_open else _others(ledger, (own, _pid(connection)))
                if others:
                    raise StoreError(
                        f"{self.place} has {others} other connections of cascade-memory, and what they write after the move "
                        "would not be in the copy; close the memory everywhere (a pooler may keep connections for some "
                        "minutes). With --while-open it is moved nevertheless"
                    )
                yield connection

    def check_alone(self) -> None:
        """Raise if the server has ended the transaction that keeps others from writing.

        Without ``while_open`` (see ``reading``), also require that every process that has the memory open opens it again before
        it may write: its writes would not be in the copy. ``reading`` does not find such a process if it is idle, since it then
        has no connection.
        """
        assert self._turn is not None
        _pid(self._turn)
        if not self._others_go_on:
            begin_generation(self._turn)

    @interruptible
    def writing(self) -> Generator[Connection, None, None]:
        """Yield a connection with which the copy is written, inside one transaction."""
        with self._opened() as ledger, ledger.connections.write(durable=True) as connection:
            take_long(connection)
            yield connection

    def snapshots(self, connection: Connection) -> PostgresSnapshotRows:
        """Return the stored snapshots of learned state, read and written inside the transaction of ``connection``."""
        return PostgresSnapshotRows(_Within(connection))

    @interruptible
    def _opened(self) -> Generator[PostgresLedger, None, None]:
        with closed_surely(lambda: PostgresLedger(self._url), PostgresLedger.close) as ledger:
            ledger.bind(ledger.facts.get(EMBEDDER) or "")  # its writes are refused if somebody replaces its content
            yield ledger


class _Within:
    """Lends the one connection of a move to ``PostgresSnapshotRows``, which thus works in the transaction of the move."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @interruptible
    def read(self) -> Generator[Connection, None, None]:
        yield self._connection

    snapshot = read

    @interruptible
    def write(self, *, durable: bool) -> Generator[Connection, None, None]:
        del durable  # the transaction knows
        yield self._connection


def _others(ledger: PostgresLedger, own: tuple[int, int]) -> int:
    """Count the connections other than the two in ``own``; a connection that was just closed gets a moment to disappear."""
    until = time.monotonic() + _LEAVING
    while True:
        with ledger.connections.read() as connection:
            (others,) = connection.execute(_OTHERS, own).fetchone()
        if not others or time.monotonic() > until:
            return int(others)
        time.sleep(0.1)


def _pid(connection: Connection) -> int:
    (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(pid)
