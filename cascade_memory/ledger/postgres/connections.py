"""The connections of a ledger in PostgreSQL. No session keeps state, so a transaction pooler may stand before the server."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol

import psycopg
from psycopg import sql

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.waiting import patience_ends
from cascade_memory.errors import StoreBusy
from cascade_memory.ledger.belonging import Belonging
from cascade_memory.ledger.postgres.batch import CLOCK, Batch
from cascade_memory.ledger.postgres.blocks import Held, Sign, block_of
from cascade_memory.ledger.postgres.explained import Unmet
from cascade_memory.ledger.postgres.migration import migrate
from cascade_memory.ledger.postgres.pool import BUSY, Pool, roll_back
from cascade_memory.ledger.postgres.turns import Turns
from cascade_memory.ledger.running import NOTED

# All writers of a ledger take turns, as in SQLite: so the lines of its log are numbered in the order of their commits, and a
# reader that goes on from a line misses none. The lock belongs to the transaction, and ends with it whatever happens.
TURN = f"SELECT pg_advisory_xact_lock({0x43415343})"
_NOT_OURS = "dead rows that nothing may write over yet: this role does not own the tables, so let their owner run VACUUM"
# Threads of one process that write at once: one has its turn, and the next one waits for it at the server. The others wait
# here: they would take all connections of the process, and its recalls, which only read, would have to wait for all writers.
_WRITERS = 2
_DURABLE = "SET LOCAL synchronous_commit = on"
# Whatever the database's default is: who has waited for the turn must see what was written meanwhile.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
# A process that is stopped in the middle of a write, or a machine that is gone, holds up all others only for so long.
_AWAKE = "SET LOCAL idle_in_transaction_session_timeout = '6s'"


class Fence(Protocol):
    """A further condition that a transaction must meet, for example that a lease is held."""

    @property
    def condition(self) -> tuple[str, Sequence[Any]]:
        """A condition in SQL, and its parameters."""
        ...

    def lost(self) -> NoReturn:
        """Raise, since the condition did not hold."""
        ...


class _Held(threading.local):
    """Holds, for each thread, the condition (see ``Fence``) that its writes must meet."""

    fenced: _Fenced | None = None

    @property
    def fence(self) -> Fence | None:
        """Return the ``Fence`` of the block (see ``_Fenced``) that the thread is in; None if it is in no such block."""
        return None if self.fenced is None or self.fenced.is_over else self.fenced.fence


class _Fenced(Held[None]):
    """A block in which each write of its thread must meet the condition of a ``Fence``."""

    def __init__(self, held: _Held, fence: Fence) -> None:
        self._held, self.fence = held, fence
        self._block: Sign | None = None

    @property
    def is_over(self) -> bool:
        """Say whether the block has ended, even if an interrupt kept its thread from noting that."""
        return self._block is None or self._block.is_over

    def take(self, block: Sign) -> None:
        self._block = block
        self._held.fenced = self

    def give_back(self) -> None:
        self._held.fenced = None

    def end(self) -> None:
        self._block = None


class PostgresConnections:
    """Hands out connections of a small pool, which is opened at the first use."""

    path = None
    read_only: str | None = None

    def __init__(self, url: str) -> None:
        self.pool = Pool(url)
        self.place = self.pool.place
        self.belonging = Belonging(None, self.place)
        self.trips = 0  # round trips to the server so far
        self._held = _Held()
        self._writing = Turns(_WRITERS)
        try:
            with self.pool.connection() as connection:
                migrate(connection)
            with self.read() as batch:
                self.belonging.opened(None, batch)
        except BaseException:
            self.pool.close()
            raise

    @interruptible
    def read(self) -> Generator[Batch, None, None]:
        """Yield a connection that sees one consistent state per statement."""
        with self.pool.connection() as connection:
            batch = Batch(connection, self.place)
            try:
                yield batch
                batch.send()
            finally:
                self.trips += batch.trips

    @interruptible
    def snapshot(self) -> Generator[Batch, None, None]:
        """Yield a connection all of whose statements see one consistent state."""
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY") as batch:
            yield batch

    @interruptible
    def write(self, *, durable: bool, brings_vectors: bool = False) -> Generator[Batch, None, None]:
        """Yield a connection inside a transaction; its commit always waits for the server's disk, even without ``durable``.

        Otherwise a server that is killed could lose a recall whose cases an agent already works with. It could also reuse the
        number of a lost line of the log: a process that has read the lost line would then miss the new one. Waiting costs about
        a millisecond.
        """
        del durable
        fence = self._held.fence
        try:
            with self._among_writers() as limit, self._transaction(_BEGIN, limit, _DURABLE, _AWAKE, TURN) as batch:
                if fence is not None:
                    batch.require(*fence.condition)
                self.belonging.require_facts(batch, claims=brings_vectors)
                if brings_vectors:  # a case may be stored, which says when
                    batch.ask_ahead(*NOTED)
                    batch.ask_ahead(CLOCK, ())
                yield batch
        except Unmet:
            with self.read() as batch:
                self.belonging.check_facts(batch)  # raises if that is the reason
            if fence is not None:
                fence.lost()
            raise

    @interruptible
    def _among_writers(self) -> Generator[str, None, None]:
        """Wait until this thread may write; yield an SQL statement that limits how long it then waits for other processes."""
        self.pool.check()
        until, now = patience_ends(), time.monotonic()
        ends = now + BUSY if until is None else min(now + BUSY, until)
        with self._writing.entered(ends - now) as came_in:
            if not came_in:
                raise StoreBusy(
                    f"other threads of this process write to {self.place}, and have not finished in time; "
                    f"{self._writing.waiting} wait"
                )
            wait = max(0.01, ends - time.monotonic())
            yield f"SET LOCAL lock_timeout = {int(1000 * wait) or 1}"

    @interruptible
    def _transaction(self, *opening: str) -> Generator[Batch, None, None]:
        with self.pool.connection() as connection:
            batch = Batch(connection, self.place)
            for statement in opening:
                batch.add(statement)
            try:
                yield batch
                batch.add("COMMIT")
                batch.send()
            except BaseException:
                roll_back(connection)
                raise
            finally:
                self.trips += batch.trips

    def fenced(self, fence: Fence) -> AbstractContextManager[None]:
        """Return a block in which each write of this thread checks the condition of the fence, inside its transaction."""
        return block_of(_Fenced(self._held, fence))

    def vacuum(self) -> str:
        """Let the server reuse the space of deleted rows.

        Return an empty text; or, if the database role may not do this for every table, a text for people that says what is
        left. What the server's log and its backups still have of the rows is outside the library's control.
        """
        warned: list[bool] = []

        def note(notice: psycopg.errors.Diagnostic) -> None:  # whoever does not own a table is warned, and it is left out
            warned.append(notice.severity_nonlocalized == "WARNING")

        with self.pool.connection() as connection, contextlib.ExitStack() as stack:
            connection.add_notice_handler(note)
            stack.callback(connection.remove_notice_handler, note)
            query = "SELECT tablename FROM pg_tables WHERE schemaname = 'cascade_memory'"
            for (table,) in connection.execute(query).fetchall():
                connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier("cascade_memory", table)))
        return _NOT_OURS if any(warned) else ""

    def close(self) -> None:
        """Close every connection. Everything committed stays."""
        self.pool.close()
