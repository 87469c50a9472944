"""A database as the source or the target of a move."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from cascade_memory.errors import InvalidInput, StoreError
from cascade_memory.ledger.belonging import EMBEDDER
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.postgres.explained import place_of
from cascade_memory.ledger.postgres.ledger import PostgresLedger

_OTHERS = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'cascade-memory'
             AND pid NOT IN (?, ?)"""


class MovedDatabase:
    """A ledger in PostgreSQL, for the time of one move."""

    def __init__(self, url: str) -> None:
        self._url, self.place = url, place_of(url)
        self._turn: Connection | None = None  # its transaction has the lock that each writer needs

    @contextlib.contextmanager
    def reading(self, *, while_open: bool) -> Generator[Connection, None, None]:
        """Yield a connection that sees one state. Until the end nobody can write; others that have it open are refused."""
        if not PostgresLedger.exists(self._url):
            raise InvalidInput(f"there is no memory in {self.place}")
        with self._opened() as ledger, ledger.connections.write(durable=False) as turn:
            own = _pid(turn)
            self._turn = turn
            with ledger.connections.snapshot() as connection:
                (others,) = connection.execute(_OTHERS, (own, _pid(connection))).fetchone()
                if others and not while_open:
                    raise StoreError(
                        f"{self.place} has {others} other connections of cascade-memory, and what they write after the move "
                        "would not be in the copy; close the memory everywhere (a pooler may keep connections for some "
                        "minutes). With --while-open it is moved nevertheless"
                    )
                yield connection

    def check_alone(self) -> None:
        """Raise if the server has ended the transaction that keeps others from writing."""
        assert self._turn is not None
        _pid(self._turn)

    @contextlib.contextmanager
    def writing(self) -> Generator[Connection, None, None]:
        """Yield a connection inside one transaction."""
        with self._opened() as ledger, ledger.connections.write(durable=True) as connection:
            yield connection

    @contextlib.contextmanager
    def _opened(self) -> Generator[PostgresLedger, None, None]:
        with contextlib.closing(PostgresLedger(self._url)) as ledger:
            ledger.bind(ledger.facts.get(EMBEDDER) or "")  # its writes are refused if somebody replaces its content
            yield ledger


def _pid(connection: Connection) -> int:
    (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(pid)
