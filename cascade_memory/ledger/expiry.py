"""Expiry: sets aside cases that were not verified for long in running time, and brings them back within a period of grace."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from cascade_memory.domain.actions import NewAction, only
from cascade_memory.domain.case import ExpiredCase
from cascade_memory.domain.records import EXPIRED, Expiring
from cascade_memory.ledger import action_log, room, running
from cascade_memory.ledger.database import Database
from cascade_memory.ledger.rows import check_columns, fetched, solution_of, usable

_AT_ONCE = 200  # per transaction, so that others can write in between
_LOOK_AGAIN = 3600.0  # running time is recorded at least this often, in seconds
_AGES = "pinned = 0 AND hidden = 0"  # what a person has decided stays


class SQLExpiry:
    """Expires cases, and brings back what is set aside. Such cases are stored in separate tables."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def expire(self, namespace: int, ttl: float | None) -> Expiring:
        """Set aside the cases that were not verified within ``ttl``; delete those whose period of grace is over.

        Both are measured in running time (``running``). Return how many cases these were, and in how many seconds to look
        again.
        """
        with self._connections.write(durable=False) as connection:
            at, run = time.time(), running.now(connection, note=True)
            old = connection.execute(
                f"SELECT key FROM cases WHERE namespace = ? AND verified_run < ? AND {_AGES} ORDER BY verified_run LIMIT ?",
                (namespace, run - ttl if ttl is not None else -1.0, _AT_ONCE),
            ).fetchall()
            keys = [key for (key,) in old]
            room.put_aside(connection, keys, "expired", at, run + min(room.GRACE, ttl or 0.0))
            room.take_away(connection, keys, EXPIRED)
            over = connection.execute(
                "SELECT key FROM expired WHERE namespace = ? AND until_run < ? LIMIT ?", (namespace, run, _AT_ONCE)
            ).fetchall()
            gone = room.remove_aside(connection, [key for (key,) in over])
            (oldest,) = connection.execute(
                f"SELECT min(verified_run) FROM cases WHERE namespace = ? AND {_AGES}", (namespace,)
            ).fetchone()
            (first,) = connection.execute("SELECT min(until_run) FROM expired WHERE namespace = ?", (namespace,)).fetchone()
            due = [_LOOK_AGAIN]
            if ttl is not None and oldest is not None:
                due.append(oldest + ttl - run)
            if first is not None:
                due.append(first - run)
            return Expiring(expired=len(old), deleted=len(gone), look_again=max(0.0, min(due)))

    def keeps_any(self, namespace: int) -> bool:
        """Return whether any case of a namespace is set aside."""
        with self._connections.read() as connection:
            return connection.execute("SELECT 1 FROM expired WHERE namespace = ? LIMIT 1", (namespace,)).fetchone() is not None

    def expired(self, namespace: int, why: str = "expired") -> list[ExpiredCase]:
        """Return the cases that were set aside and can still be brought back, oldest first.

        ``why`` is "expired" for those that were not verified for long, and "evicted" for those that had to make room.
        """
        with self._connections.read() as connection:
            run = running.seen(connection)
            query = """SELECT expired.id, namespace.name, query, record, expired_at, until_run FROM expired
                       JOIN namespace ON namespace.id = expired.namespace
                       WHERE expired.namespace = ? AND until_run >= ? AND why = ? ORDER BY key"""
            return usable(fetched(connection, query, (namespace, run, why)), lambda row: _expired(row, run, why))

    def keys_of(self, namespace: int, ids: Sequence[str]) -> dict[str, int]:
        """Return the keys of cases that were set aside, by id: they can be forgotten like any other case."""
        with self._connections.read() as connection:
            found = dict(connection.execute("SELECT id, key FROM expired WHERE namespace = ?", (namespace,)).fetchall())
            return {case_id: found[case_id] for case_id in ids if case_id in found}

    def revive(self, namespace: int, ids: Sequence[str] | None, action: NewAction | None = None) -> list[str]:
        """Turn these cases, or all that expired, back into cases that count as verified now; return their ids.

        They keep their ids and get new keys. The log has a line for each, so that every process adds them to its index.
        """
        with self._connections.write(durable=True) as connection:
            at, run = time.time(), running.now(connection)
            rows = connection.execute(
                "SELECT key, id, why FROM expired WHERE namespace = ? AND until_run >= ? ORDER BY key", (namespace, run)
            ).fetchall()
            wanted = None if ids is None else set(ids)
            back = [row for row in rows if (row[2] == "expired" if wanted is None else row[1] in wanted)]
            for key, _, _ in back:
                room.bring_back(connection, key, (at, run))
            ids_back = [row[1] for row in back]
            action_log.write(connection, namespace, action, subject=only(ids_back), counts={"cases": len(back)})
            return ids_back


def _expired(row: Sequence[Any], run: float, why: str) -> ExpiredCase:
    rest = json.loads(row[3])
    check_columns(texts=row[:3], numbers=row[5:6], moments=row[4:5])
    return ExpiredCase(
        id=row[0],
        namespace=row[1],
        query=row[2],
        solution=solution_of(rest["kind"], rest["text"]),
        expired_at=row[4],
        seconds_left=row[5] - run,
        why=why,
    )
