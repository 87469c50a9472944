"""Leases: rows that say which worker does a job for all workers, until when, and in which epoch.

A worker that was paused for longer than its lease may not know that another one has taken over. So everything that it writes
for the job checks the lease in the same transaction. Whoever takes the lease begins a new epoch, and a worker of an earlier
epoch can write nothing.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from cascade_memory.errors import StoreError
from cascade_memory.ledger.postgres.connections import PostgresConnections
from cascade_memory.ledger.postgres.dialect import SCHEMA

LASTS = 12.0  # seconds, by the server's clock: a call to Chroma may take ten
_SHORTER = {"tidying": 8.0}  # work of a moment, which waits at most for a writer that was stopped
_RENEWED_AFTER = 0.25  # of that time
_UNTIL = "clock_timestamp() + make_interval(secs => ?)"
_TAKE = f"""INSERT INTO {SCHEMA}.lease AS held (job, namespace, holder, epoch, expires) VALUES (?, ?, ?, 1, {_UNTIL})
            ON CONFLICT (job, namespace) DO UPDATE SET holder = excluded.holder, epoch = held.epoch + 1,
              expires = {_UNTIL}
            WHERE held.expires < clock_timestamp() OR held.holder = excluded.holder RETURNING epoch"""
_MINE = "job = ? AND namespace = ? AND holder = ? AND epoch = ?"
_RENEW = f"UPDATE {SCHEMA}.lease SET expires = {_UNTIL} WHERE {_MINE} AND expires >= clock_timestamp() RETURNING epoch"
_RESIGN = f"UPDATE {SCHEMA}.lease SET expires = clock_timestamp() - interval '1 second' WHERE {_MINE}"
# The row stays locked until the writing transaction ends, so nobody takes over in between.
_HELD = f"EXISTS (SELECT 1 FROM {SCHEMA}.lease WHERE {_MINE} AND expires >= clock_timestamp() FOR SHARE)"


class LeaseLost(StoreError):
    """Another worker has taken over the job; nothing was written."""


class Lease:
    """The right to do one job for one namespace, or for all of them (``namespace=0``)."""

    def __init__(self, connections: PostgresConnections, job: str, namespace: int = 0) -> None:
        self._connections, self._job, self._namespace = connections, job, namespace
        self._holder = f"{platform.node()} {os.getpid()} {uuid.uuid4().hex[:8]}"
        self._lasts = _SHORTER.get(job, LASTS)
        self._epoch: int | None = None
        self._renewed = 0.0
        self._taking = threading.Lock()

    @property
    def _mine(self) -> tuple[str, int, str, int]:
        return self._job, self._namespace, self._holder, self._epoch or 0

    def try_acquire(self) -> bool:
        """Take the lease if nobody has it; return whether it is held now.

        The server may say that this object has the lease already, while the object does not know it, since an earlier call that
        took it or gave it back was interrupted. Then it is taken again.
        """
        self._connections.pool.check()  # in a child of its process, nobody would end a turn that another thread had
        with self._taking:
            if self._epoch is not None:
                return self.keep()
            began = time.monotonic()
            with self._connections.read() as connection:
                row = connection.execute(_TAKE, (self._job, self._namespace, self._holder, self._lasts, self._lasts)).fetchone()
            if row is not None:
                self._epoch, self._renewed = int(row[0]), began
            return row is not None

    def keep(self) -> bool:
        """Renew the lease if a part of its time is over; return whether it is still held."""
        began = time.monotonic()
        if self._epoch is None or began - self._renewed < _RENEWED_AFTER * self._lasts:
            return self._epoch is not None
        with self._connections.read() as connection:
            row = connection.execute(_RENEW, (self._lasts, *self._mine)).fetchone()
        self._epoch, self._renewed = (None, 0.0) if row is None else (self._epoch, began)
        return row is not None

    def held(self) -> AbstractContextManager[None]:
        """Return a block in which each write of this thread raises ``LeaseLost`` if the lease is no longer held."""
        if self._epoch is None:
            self.lost()
        return self._connections.fenced(self)

    @property
    def condition(self) -> tuple[str, Sequence[Any]]:
        """The condition in SQL that the lease is held, and its parameters."""
        return _HELD, self._mine

    def lost(self) -> NoReturn:
        """Raise ``LeaseLost``, since the lease is not held any more."""
        self._epoch = None
        raise LeaseLost(f"another worker has taken over {self._job}: this one was away for more than {self._lasts:g} seconds")

    def release(self) -> None:
        """Give the lease back; the next holder gets a new epoch. If the server is not reached, the lease ends by itself."""
        if self._epoch is not None:
            mine, self._epoch = self._mine, None
            with contextlib.suppress(StoreError), self._connections.read() as connection:
                connection.execute(_RESIGN, mine).fetchall()


def holders(connections: PostgresConnections) -> dict[str, str]:
    """Return who does each job at present, by job; if a job has several leases, a count of workers and namespaces."""
    query = f"""SELECT job, max(holder), count(*), count(DISTINCT holder) FROM {SCHEMA}.lease
                WHERE expires >= clock_timestamp() GROUP BY job ORDER BY job"""
    with connections.read() as connection:
        rows = connection.execute(query).fetchall()
    return {job: holder if of == 1 else f"{workers} workers, {of} namespaces" for job, holder, of, workers in rows}
