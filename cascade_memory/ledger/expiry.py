"""Expiry: sets aside cases that were not verified for long in running time, and brings them back within a period of grace."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from cascade_memory.domain.actions import NewAction, only
from cascade_memory.domain.case import ExpiredCase
from cascade_memory.domain.records import CASE_ADDED, EXPIRED, Expiring
from cascade_memory.domain.trust import LEVELS
from cascade_memory.ledger import action_log, cases, running, set_aside
from cascade_memory.ledger.database import Connection, Database
from cascade_memory.ledger.rows import solution_of

GRACE = 7 * 24 * 3600.0  # seconds of running time in which an expired case can be brought back (its ttl if that is shorter)
_AT_ONCE = 200  # per transaction, so that others can write in between
_LOOK_AGAIN = 3600.0  # running time is recorded at least this often, in seconds
_AGES = "pinned = 0 AND hidden = 0"  # what a person has decided stays
_REST = (
    *("head", "source", "episode", "created_at", "shown", "succeeded", "novelty", "verified_at"),
    *("actor", "channel", "trust", "probation"),
)


class SQLExpiry:
    """Expires cases, and brings them back. Expired cases are stored in separate tables."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def expire(self, namespace: int, ttl: float | None) -> Expiring:
        """Set aside cases not verified within ``ttl``, and delete those whose period of grace is over, both by running time."""
        with self._connections.write(durable=False) as connection:
            at, run = time.time(), running.now(connection, note=True)
            old = connection.execute(
                f"SELECT key FROM cases WHERE namespace = ? AND verified_run < ? AND {_AGES} ORDER BY verified_run LIMIT ?",
                (namespace, run - ttl if ttl is not None else -1.0, _AT_ONCE),
            ).fetchall()
            for (key,) in old:
                _set_aside(connection, key, at, run + min(GRACE, ttl or 0.0))
            over = connection.execute(
                "SELECT key FROM expired WHERE namespace = ? AND until_run < ? LIMIT ?", (namespace, run, _AT_ONCE)
            ).fetchall()
            gone = set_aside.remove(connection, [key for (key,) in over])
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

    def expired(self, namespace: int) -> list[ExpiredCase]:
        """Return the expired cases that can be brought back, oldest first."""
        with self._connections.read() as connection:
            run = running.seen(connection)
            rows = connection.execute(
                """SELECT expired.id, namespace.name, query, record, expired_at, until_run FROM expired
                   JOIN namespace ON namespace.id = expired.namespace
                   WHERE expired.namespace = ? AND until_run >= ? ORDER BY key""",
                (namespace, run),
            )
            return [
                ExpiredCase(
                    id=row[0],
                    namespace=row[1],
                    query=row[2],
                    solution=solution_of((rest := json.loads(row[3]))["kind"], rest["text"]),
                    expired_at=row[4],
                    seconds_left=row[5] - run,
                )
                for row in rows
            ]

    def keys_of(self, namespace: int, ids: Sequence[str]) -> dict[str, int]:
        """Return the keys of expired cases by id."""
        with self._connections.read() as connection:
            found = dict(connection.execute("SELECT id, key FROM expired WHERE namespace = ?", (namespace,)).fetchall())
            return {case_id: found[case_id] for case_id in ids if case_id in found}

    def revive(self, namespace: int, ids: Sequence[str] | None, action: NewAction | None = None) -> list[str]:
        """Turn expired cases back into cases that count as verified now, with their old ids and new keys; return the ids.

        The log has a line for each, so that every process adds them to its index.
        """
        with self._connections.write(durable=True) as connection:
            at, run = time.time(), running.now(connection)
            rows = connection.execute(
                "SELECT key, id, query, pair, copies, record FROM expired WHERE namespace = ? AND until_run >= ? ORDER BY key",
                (namespace, run),
            ).fetchall()
            wanted = None if ids is None else set(ids)
            back = [row for row in rows if wanted is None or row[1] in wanted]
            for key, case_id, query, pair, copies, record in back:
                _bring_back(connection, key, namespace, (case_id, query, pair, copies), json.loads(record), (at, run))
            ids_back = [row[1] for row in back]
            action_log.write(connection, namespace, action, subject=only(ids_back), counts={"cases": len(back)})
            return ids_back


def _set_aside(connection: Connection, key: int, at: float, until: float) -> None:
    row = connection.execute(
        f"""SELECT cases.id, cases.namespace, query, pair, copies, solution_kind, case_text.solution, metadata, digest,
              {", ".join(f"cases.{name}" for name in _REST)}
            FROM cases JOIN case_text ON case_text.key = cases.key JOIN solution ON solution.id = cases.solution
            WHERE cases.key = ?""",
        (key,),
    ).fetchone()
    rest = dict(zip(("kind", "text", "metadata", "digest", *_REST), row[5:], strict=True))
    connection.execute(
        """INSERT INTO expired (key, id, namespace, query, pair, copies, expired_at, until_run, record)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (key, *row[:5], at, until, json.dumps(rest, ensure_ascii=False)),
    )
    connection.execute("INSERT INTO expired_vector SELECT key, vector FROM case_vector WHERE key = ?", (key,))
    connection.execute(
        "INSERT INTO expired_field SELECT namespace, name, value, cases_key FROM field WHERE cases_key = ?", (key,)
    )
    cases.delete(connection, key, EXPIRED)


def _bring_back(
    connection: Connection,
    key: int,
    namespace: int,
    known: tuple[str, str, str, int],
    rest: dict[str, object],
    verified: tuple[float, float],
) -> None:
    still = connection.execute("SELECT key FROM episode WHERE key = ?", (rest["episode"],)).fetchone()
    rest["episode"] = None if still is None else still[0]
    rest["verified_at"] = verified[0]
    # Cases that an older version has set aside lack these.
    rest = {"actor": None, "channel": None, "trust": LEVELS[str(rest["source"])], "probation": 0, **rest}
    solution = cases.solution_id(connection, namespace, str(rest["digest"]))
    (new,) = connection.execute(
        f"""INSERT INTO cases (id, query, pair, copies, namespace, solution, verified_run, {", ".join(_REST)})
            VALUES (?, ?, ?, ?, ?, ?, ?, {", ".join("?" * len(_REST))}) RETURNING key""",
        (*known, namespace, solution, verified[1], *(rest[name] for name in _REST)),
    ).fetchone()
    connection.execute("INSERT INTO case_text VALUES (?, ?, ?, ?)", (new, rest["kind"], rest["text"], rest["metadata"]))
    connection.execute("INSERT INTO case_vector SELECT ?, vector FROM expired_vector WHERE key = ?", (new, key))
    connection.execute("INSERT INTO field SELECT namespace, name, value, ? FROM expired_field WHERE expired = ?", (new, key))
    for table in ("outcome", "addition"):
        connection.execute(f"UPDATE {table} SET cases_key = ? WHERE cases_key = ?", (new, key))
    set_aside.remove(connection, [key])
    cases.note(connection, namespace, CASE_ADDED, new)
