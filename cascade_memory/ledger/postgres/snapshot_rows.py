"""Snapshots of learned state as rows. All workers share them: each worker that learns from the log comes to the same state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from cascade_memory.domain.records import PURGED, TOOK_BACK
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.postgres.dialect import SCHEMA

_KEEP = 3
_PART = 4 * 2**20  # bytes of an encoder's weights per row
_TOOK_BACK = "SELECT 1 FROM change WHERE seq > ? AND namespace = ? AND kind IN (?, ?, ?, ?) LIMIT 1"
_PUT = f"INSERT INTO {SCHEMA}.snapshot VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_PUT_PART = f"INSERT INTO {SCHEMA}.snapshot_weights VALUES (?, ?, ?, ?, ?)"
_NEWEST = f"""SELECT seq, content FROM {SCHEMA}.snapshot WHERE namespace = ? AND ranker = ? AND seq <= ? AND seq > ?
              ORDER BY seq DESC LIMIT 1"""
_KEYS = f"SELECT namespace, seq, ranker FROM {SCHEMA}.snapshot ORDER BY namespace, seq"
_OLD = f"""DELETE FROM {SCHEMA}.snapshot WHERE namespace = ? AND ranker = ? AND seq <
           (SELECT min(seq) FROM (SELECT seq FROM {SCHEMA}.snapshot WHERE namespace = ? AND ranker = ?
                                  ORDER BY seq DESC LIMIT {_KEEP}) AS kept)"""
_WEIGHTS = f"SELECT content FROM {SCHEMA}.snapshot_weights WHERE namespace = ? AND ranker = ? AND seq = ? AND part = ?"


class Lender(Protocol):
    """The protocol of an object that lends ``PostgresSnapshotRows`` its connections."""

    def read(self) -> AbstractContextManager[Connection]:
        """Lend a connection to read with."""
        ...

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Lend a connection all of whose statements see one consistent state."""
        ...

    def write(self, *, durable: bool) -> AbstractContextManager[Connection]:
        """Lend a connection inside a transaction."""
        ...


class PostgresSnapshotRows:
    """Stores, reads and deletes snapshots."""

    def __init__(self, connections: Lender) -> None:
        self._connections = connections

    def put(self, namespace: int, seq: int, ranker: str, content: bytes, weights: Path | None) -> None:
        """Store a snapshot, unless data was withdrawn or deleted after log line ``seq``; keep the newest few of each ranker.

        Another worker may have deleted data since this one last read the log, so the log is checked in the same transaction.
        """
        with self._connections.write(durable=False) as connection:
            if connection.execute(_TOOK_BACK, (seq, namespace, *TOOK_BACK, PURGED)).fetchone() is not None:
                return
            stored = connection.execute(_PUT, (namespace, ranker, seq, content)).rowcount
            if stored and weights is not None:
                with weights.open("rb") as file:
                    number = 0
                    while part := file.read(_PART):
                        connection.execute(_PUT_PART, (namespace, ranker, seq, number, part))
                        number += 1
            connection.execute(_OLD, (namespace, ranker, namespace, ranker))

    def newest(self, namespace: int, ranker: str, until: int, after: int) -> tuple[int, bytes] | None:
        """Return (seq, content) of the newest snapshot with a ``seq`` greater than ``after`` and at most ``until``, or None."""
        with self._connections.read() as connection:
            row = connection.execute(_NEWEST, (namespace, ranker, until, after)).fetchone()
        return None if row is None else (int(row[0]), bytes(row[1]))

    def every(self) -> Iterator[tuple[int, int, str, bytes]]:
        """Yield (namespace, seq, ranker, content) of all snapshots, the oldest of each namespace first."""
        with self._connections.read() as connection:
            keys = connection.execute(_KEYS).fetchall()
        for namespace, seq, ranker in keys:
            if (found := self.newest(namespace, ranker, seq, seq - 1)) is not None:
                yield int(namespace), int(seq), str(ranker), found[1]

    def read_weights(self, namespace: int, seq: int, ranker: str, target: Path) -> bool:
        """Write the weights of a snapshot to the file ``target``; return whether it has any."""
        number = 0
        with target.open("wb") as file, self._connections.snapshot() as connection:
            while (row := connection.execute(_WEIGHTS, (namespace, ranker, seq, number)).fetchone()) is not None:
                file.write(row[0])
                number += 1
        return number > 0

    def delete(self, namespace: int) -> None:
        """Delete all snapshots of a namespace."""
        with self._connections.write(durable=True) as connection:
            connection.execute(f"DELETE FROM {SCHEMA}.snapshot WHERE namespace = ?", (namespace,))
