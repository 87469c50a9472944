"""Makes room for new cases: sets cases aside, where they are kept for a while, deletes their rows, and brings them back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cascade_memory.domain.records import CASE_ADDED, RETOLD, UNHIDDEN
from cascade_memory.domain.trust import LEVELS
from cascade_memory.ledger import case_states, owned
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.events import HEARING
from cascade_memory.ledger.observer import WhyGone
from cascade_memory.ledger.rows import KEYS, NOTE, executed_for, fetched_for, note, usable

GRACE = 7 * 24 * 3600.0  # seconds of running time in which a case can be brought back (its ttl if that is shorter)
_TRIMMED_AT_ONCE = 1_000
_REST = (
    *("head", "source", "episode", "created_at", "shown", "succeeded", "novelty", "verified_at", "verified_run"),
    *("actor", "channel", "trust"),
)
# What is kept of a case as JSON, and where it is read.
_RECORD = {
    **{"kind": "solution_kind", "text": "case_text.solution", "metadata": "metadata", "digest": "digest"},
    **{name: f"cases.{name}" for name in _REST},
}
_KEPT = "IN (SELECT key FROM expired)"
_REMOVE = f"DELETE FROM expired WHERE key IN ({KEYS})"


def put_aside(connection: Connection, keys: Sequence[int], why: str, at: float, until: float) -> set[int]:
    """Copy cases to the tables of cases that are set aside; return their namespaces.

    ``at`` is when they are set aside, by the wall clock; ``until`` is the running time until which the cases are kept. The
    caller then deletes their own rows with ``take_away``. A case whose rows are incomplete is not copied.
    """
    query = f"""SELECT cases.key, cases.id, cases.namespace, query, pair, copies, cases.actor, {", ".join(_RECORD.values())}
      FROM cases JOIN case_text ON case_text.key = cases.key JOIN case_vector ON case_vector.key = cases.key
      JOIN solution ON solution.id = cases.solution WHERE cases.key IN ({KEYS})"""
    rows = fetched_for(connection, query, keys)
    connection.executemany(
        """INSERT INTO expired (key, id, namespace, query, pair, copies, actor, expired_at, until_run, why, record)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING""",
        [(*row[:7], at, until, why, json.dumps(dict(zip(_RECORD, row[7:], strict=True)), ensure_ascii=False)) for row in rows],
    )
    executed_for(
        connection,
        f"INSERT INTO expired_vector SELECT key, vector FROM case_vector WHERE key IN ({KEYS}) AND key {_KEPT}",
        keys,
    )
    executed_for(
        connection,
        f"""INSERT INTO expired_field SELECT namespace, name, value, cases_key FROM field
            WHERE cases_key IN ({KEYS}) AND cases_key {_KEPT}""",
        keys,
    )
    return {row[2] for row in rows}


def take_away(connection: Connection, keys: Sequence[int], kind: str | None, *, why: WhyGone = "lost") -> None:
    """Delete the rows of cases. ``kind`` is the kind of the log lines about this; if it is None, no line is written.

    For cases that are set aside, it stays known who added them by hand.
    """
    rows = fetched_for(connection, f"SELECT key, namespace, solution, id FROM cases WHERE key IN ({KEYS})", keys)
    gone = [row[0] for row in rows]
    owned.delete_of_cases(connection, "cases", gone, f"AND cases_key NOT {_KEPT}")
    executed_for(connection, f"DELETE FROM cases WHERE key IN ({KEYS})", gone)
    executed_for(
        connection,
        f"""DELETE FROM solution WHERE id IN ({KEYS})
            AND NOT EXISTS (SELECT 1 FROM cases WHERE cases.solution = solution.id)""",
        sorted({row[2] for row in rows}),
    )
    for one in HEARING:
        one.on_case_gone(connection, keys if why == "forgotten" else gone, why)
    if kind is not None:
        connection.executemany(NOTE, [(namespace, kind, key, case_id) for key, namespace, _, case_id in rows])


def trim(connection: Connection, namespace: int, most: int) -> None:
    """Delete some of the evicted cases for good, if more than ``most`` of them are kept.

    One call deletes at most 1,000 cases, all of the one actor who has most cases, stored or kept; those that were evicted first
    go first. Otherwise a flood of cases would drive out the cases that it has displaced.
    """
    kept = _by_actor(connection, "expired WHERE why = 'evicted' AND", namespace)
    over = sum(kept.values()) - most
    if over <= 0:
        return
    stored = _by_actor(connection, "cases WHERE actor IS NOT NULL AND", namespace)
    (all_stored,) = connection.execute("SELECT count(*) FROM cases WHERE namespace = ?", (namespace,)).fetchone()
    stored[None] = all_stored - sum(stored.values())
    actor = max(kept, key=lambda one: (kept[one] + stored.get(one, 0), kept[one]))
    theirs, named = ("IS NULL", []) if actor is None else ("= ?", [actor])
    oldest = connection.execute(
        f"""SELECT key FROM expired WHERE namespace = ? AND why = 'evicted' AND actor {theirs}
            ORDER BY until_run, key LIMIT ?""",
        (namespace, *named, min(over, _TRIMMED_AT_ONCE)),
    ).fetchall()
    remove_aside(connection, [key for (key,) in oldest])


def _by_actor(connection: Connection, rows: str, namespace: int) -> dict[str | None, int]:
    counted = connection.execute(f"SELECT actor, count(*) FROM {rows} namespace = ? GROUP BY actor", (namespace,))
    return {actor: int(count) for actor, count in counted.fetchall()}


def bring_back(connection: Connection, key: int, verified: tuple[float, float]) -> None:
    """Turn a case that was set aside back into a case with a new key, which the log reports to every process.

    ``verified`` says when it then counts as verified, by the wall clock and by running time.
    """
    (namespace,) = connection.execute("SELECT namespace FROM expired WHERE key = ?", (key,)).fetchone()
    new = _inserted(connection, key, verified)
    for table in owned.OF_CASES:
        connection.execute(f"UPDATE {table} SET cases_key = ? WHERE cases_key = ?", (new, key))
    remove_aside(connection, [key])
    note(connection, namespace, CASE_ADDED, new)


def restore(connection: Connection, key: int) -> None:
    """Turn a case that was set aside back into what it was: it keeps its key, so the log lines about it hold again."""
    query = "SELECT namespace, id FROM expired WHERE key = ?"
    namespace, case_id = connection.execute(query, (key,)).fetchone()
    as_case(connection, key)
    # Every process shows it again, like one that was hidden, and copies of it are made again, as if it had changed.
    for kind in (UNHIDDEN, RETOLD):
        note(connection, namespace, kind, key, case_id)


def as_case(connection: Connection, key: int) -> tuple[str, float, float]:
    """Turn a case that was set aside back into a case with its old key, without a line in the log.

    Return why it was set aside, and since when and until when it was kept.
    """
    kept = connection.execute("SELECT why, expired_at, until_run FROM expired WHERE key = ?", (key,)).fetchone()
    _inserted(connection, key, None, again=key)
    _remove_rows(connection, [key])
    return kept


def _inserted(connection: Connection, key: int, verified: tuple[float, float] | None, *, again: int | None = None) -> int:
    """Store a case again that was set aside; return its key, which is ``again`` or, if that is None, a new one."""
    query = "SELECT id, namespace, query, pair, copies, record FROM expired WHERE key = ?"
    *known, record = connection.execute(query, (key,)).fetchone()
    kept = json.loads(record)
    still = connection.execute("SELECT key FROM episode WHERE key = ?", (kept["episode"],)).fetchone()
    # Cases that an older version has set aside lack these.
    rest: dict[str, Any] = {"actor": None, "channel": None, "trust": LEVELS[str(kept["source"])]}
    rest |= {"verified_run": 0.0, **kept, "episode": None if still is None else still[0]}
    if verified is not None:
        rest["verified_at"], rest["verified_run"] = verified
    connection.execute(
        "INSERT INTO solution (namespace, digest) VALUES (?, ?) ON CONFLICT DO NOTHING", (known[1], str(rest["digest"]))
    )
    own, values = ("", ()) if again is None else ("key, ", (again,))
    # What was decided about its author meanwhile holds for it as well.
    author = case_states.author_of_new(rest["actor"], rest["source"], rest["trust"])
    (new,) = connection.execute(
        f"""INSERT INTO cases ({own}id, namespace, query, pair, copies, {", ".join(_REST)}, solution, hidden)
            VALUES ({"?, " * len(values)}?, ?, ?, ?, ?, {", ".join("?" * len(_REST))},
              (SELECT id FROM solution WHERE namespace = ? AND digest = ?), {case_states.OF_NEW}) RETURNING key""",
        (*values, *known, *(rest[name] for name in _REST), known[1], str(rest["digest"]), known[1], author),
    ).fetchone()
    new = int(new)
    connection.execute("INSERT INTO case_text VALUES (?, ?, ?, ?)", (new, rest["kind"], rest["text"], rest["metadata"]))
    connection.execute("INSERT INTO case_vector SELECT ?, vector FROM expired_vector WHERE key = ?", (new, key))
    connection.execute("INSERT INTO field SELECT namespace, name, value, ? FROM expired_field WHERE expired = ?", (new, key))
    return new


# -- what is set aside, where it is ---------------------------------------------------------------------------------------


def remove_aside(connection: Connection, keys: Sequence[int]) -> list[tuple[int, str]]:
    """Delete permanently the cases that are set aside under these keys; return (key, id) of those that existed."""
    gone = [
        (key, case_id) for key, case_id in fetched_for(connection, f"SELECT key, id FROM expired WHERE key IN ({KEYS})", keys)
    ]
    if gone:
        there = [key for key, _ in gone]
        owned.delete_of_cases(connection, "expired", there)
        executed_for(connection, _REMOVE, there)
        for one in HEARING:
            one.on_case_gone(connection, there, "lost")
    return gone


def _remove_rows(connection: Connection, keys: Sequence[int]) -> None:
    """Delete the rows of cases that are set aside, except for those that say who added the cases by hand."""
    owned.delete_with(connection, "expired", keys)
    executed_for(connection, _REMOVE, keys)


def displace(connection: Connection, namespace: int, pair: str, case_id: str) -> None:
    """Delete the expired cases that a new case replaces: those with the same pair or the same id."""
    rows = connection.execute(
        "SELECT key FROM expired WHERE (namespace = ? AND pair = ?) OR id = ?", (namespace, pair, case_id)
    ).fetchall()
    remove_aside(connection, [key for (key,) in rows])


def uncount(connection: Connection, keys: Sequence[int], value: float) -> None:
    """Subtract an outcome of this ``value`` from the counts of those of these cases that are set aside."""
    rows = fetched_for(connection, f"SELECT key, record FROM expired WHERE key IN ({KEYS})", keys)
    for key, record in usable(rows, lambda row: (row[0], _uncounted(row[1], value))):
        connection.execute("UPDATE expired SET record = ? WHERE key = ?", (record, key))


def _uncounted(record: str, value: float) -> str:
    kept = json.loads(record)
    kept["shown"], kept["succeeded"] = max(0, kept["shown"] - 1), max(0.0, kept["succeeded"] - value)
    return json.dumps(kept, ensure_ascii=False)
