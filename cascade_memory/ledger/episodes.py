"""Reading episodes, and forgetting them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.records import FORGOTTEN
from cascade_memory.domain.trajectory import Solution
from cascade_memory.ledger import cases
from cascade_memory.ledger.compaction import take_out
from cascade_memory.ledger.filters import OUTCOMES, compile_where
from cascade_memory.ledger.packing import pack_solution
from cascade_memory.ledger.reading import fetched, solution_if_readable
from cascade_memory.ledger.recalls import shown_cases

_SELECT = """SELECT episode.key, episode.id, namespace.name, episode.query, episode.status, episode.arm, episode.opened_at,
  episode.closed_at, outcome.value, episode.source, coalesce(outcome.solution_kind, attempt.solution_kind),
  coalesce(outcome.solution, attempt.solution), (SELECT count(*) FROM recall WHERE recall.episode = episode.key),
  episode.thread, attempt.status
  FROM episode JOIN namespace ON namespace.id = episode.namespace
  LEFT JOIN outcome ON outcome.episode = episode.key AND outcome.withdrawn_at IS NULL
  LEFT JOIN attempt ON attempt.episode = episode.key"""


def one(connection: sqlite3.Connection, episode_id: str) -> Episode | None:
    """Return one episode."""
    rows = fetched(connection, f"{_SELECT} WHERE episode.id = ?", (episode_id,))
    return _episode(connection, rows[0]) if rows else None


def latest(connection: sqlite3.Connection, namespace: int, thread: str) -> Episode | None:
    """Return the newest episode of a thread."""
    row = connection.execute(
        f"{_SELECT} WHERE episode.thread = ? AND episode.namespace = ? ORDER BY episode.key DESC LIMIT 1", (thread, namespace)
    ).fetchone()
    return None if row is None else _episode(connection, row)


def finish(
    connection: sqlite3.Connection, episode_id: str, namespace: int, status: str, solution: Solution | None, at: float
) -> bool:
    """Note how the run of an open episode ended; return False, and change nothing, if it is not open."""
    row = connection.execute(
        "SELECT key FROM episode WHERE id = ? AND namespace = ? AND status = 'open'", (episode_id, namespace)
    ).fetchone()
    if row is not None:
        kind, text = pack_solution(solution)
        connection.execute("INSERT OR REPLACE INTO attempt VALUES (?, ?, ?, ?, ?)", (row[0], status, kind, text, at))
    return row is not None


def listed(
    connection: sqlite3.Connection, namespace: int | None, status: str | None, before: float | None, source: str | None
) -> list[Episode]:
    """Return episodes, oldest first, by namespace, status, time of opening, and who judged them."""
    rows = fetched(
        connection,
        f"""{_SELECT} WHERE (?1 IS NULL OR episode.namespace = ?1) AND (?2 IS NULL OR episode.status = ?2)
            AND (?3 IS NULL OR episode.opened_at < ?3) AND (?4 IS NULL OR episode.source = ?4) ORDER BY episode.key""",
        (namespace, status, before, source),
    )
    return [_episode(connection, row) for row in rows]


def _episode(connection: sqlite3.Connection, row: Sequence[Any]) -> Episode:
    shown = shown_cases(connection, row[0])
    ids = [
        found[0]
        for key in shown
        if (found := connection.execute("SELECT id FROM cases WHERE key = ?", (key,)).fetchone()) is not None
    ]
    return Episode(
        id=row[1],
        namespace=row[2],
        query=row[3],
        status=row[4],
        arm=row[5],
        opened_at=row[6],
        closed_at=row[7],
        reward=row[8],
        source=row[9],
        solution=solution_if_readable(row[10], row[11]),
        recalls=row[12],
        thread_id=row[13],
        ended=row[14],
        cases=tuple(ids),
    )


def forget(connection: sqlite3.Connection, namespace: int, keys: Sequence[int]) -> dict[str, int]:
    """Delete cases, and the episodes that ended in them: their queries say the same."""
    gone = {"cases": 0, "episodes": 0, "recalls": 0, "outcomes": 0}
    take_out(connection, namespace, keys)
    for key in keys:
        for (episode,) in connection.execute("SELECT DISTINCT episode FROM outcome WHERE cases_key = ?", (key,)).fetchall():
            # Its last word may have made another case than the one it took back.
            others = connection.execute(
                "SELECT cases_key FROM outcome WHERE episode = ? AND withdrawn_at IS NULL AND cases_key <> ?", (episode, key)
            ).fetchall()
            _forget_episode(connection, episode, gone)
            for (other,) in others:
                _release(connection, namespace, other, gone)
        if connection.execute("SELECT 1 FROM cases WHERE key = ?", (key,)).fetchone():
            cases.delete(connection, key)
            gone["cases"] += 1
    return gone


def forget_where(connection: sqlite3.Connection, namespace: int, where: object) -> dict[str, int]:
    """Delete the cases with such metadata, and the episodes that were rewarded with such metadata."""
    keys = [key for (key,) in connection.execute(*compile_where(where, namespace)).fetchall()]
    outcomes = [key for (key,) in connection.execute(*compile_where(where, namespace, OUTCOMES)).fetchall()]
    gone = forget(connection, namespace, keys)
    for outcome in outcomes:
        for (episode,) in connection.execute("SELECT episode FROM outcome WHERE key = ?", (outcome,)).fetchall():
            _forget_with_case(connection, namespace, episode, gone)
    return gone


def forget_episode(connection: sqlite3.Connection, episode_id: str) -> dict[str, int]:
    """Delete an episode and the case it made."""
    gone = {"cases": 0, "episodes": 0, "recalls": 0, "outcomes": 0}
    row = connection.execute("SELECT key, namespace FROM episode WHERE id = ?", (episode_id,)).fetchone()
    if row is not None:
        _forget_with_case(connection, row[1], row[0], gone)
    return gone


def _forget_with_case(connection: sqlite3.Connection, namespace: int, episode: int, gone: dict[str, int]) -> None:
    made = connection.execute(
        "SELECT cases_key FROM outcome WHERE episode = ? AND withdrawn_at IS NULL AND cases_key IS NOT NULL", (episode,)
    ).fetchall()
    _forget_episode(connection, episode, gone)
    for (key,) in made:
        _release(connection, namespace, key, gone)


def _release(connection: sqlite3.Connection, namespace: int, key: int, gone: dict[str, int]) -> None:
    gone["cases"] += cases.release(connection, key)
    if connection.execute("SELECT 1 FROM cases WHERE key = ?", (key,)).fetchone() is None:  # now, or evicted before
        take_out(connection, namespace, [key])


def drop(connection: sqlite3.Connection, episode: int) -> None:
    """Delete an episode that cannot be read; the case it made stays."""
    _forget_episode(connection, episode, {"cases": 0, "episodes": 0, "recalls": 0, "outcomes": 0})


def _forget_episode(connection: sqlite3.Connection, episode: int, gone: dict[str, int]) -> None:
    (namespace,) = connection.execute("SELECT namespace FROM episode WHERE key = ?", (episode,)).fetchone()
    connection.execute("UPDATE cases SET episode = NULL WHERE episode = ?", (episode,))
    connection.execute("DELETE FROM outcome_field WHERE outcome IN (SELECT key FROM outcome WHERE episode = ?)", (episode,))
    gone["outcomes"] += connection.execute("DELETE FROM outcome WHERE episode = ?", (episode,)).rowcount
    connection.execute("DELETE FROM attempt WHERE episode = ?", (episode,))
    connection.execute("DELETE FROM episode_vector WHERE key = ?", (episode,))
    gone["recalls"] += connection.execute("DELETE FROM recall WHERE episode = ?", (episode,)).rowcount
    gone["episodes"] += connection.execute("DELETE FROM episode WHERE key = ?", (episode,)).rowcount
    cases.note(connection, namespace, FORGOTTEN, episode)


def forget_namespace(connection: sqlite3.Connection, namespace: int) -> dict[str, int]:
    """Delete everything of a namespace except its name, which recall may be using at this moment."""
    gone: dict[str, int] = {}
    for table in ("field", "outcome_field"):
        connection.execute(f"DELETE FROM {table} WHERE namespace = ?", (namespace,))
    keys = "(SELECT key FROM cases WHERE namespace = ?)"
    for table in ("case_text", "case_vector"):
        connection.execute(f"DELETE FROM {table} WHERE key IN {keys}", (namespace,))
    for table, column in (("attempt", "episode"), ("episode_vector", "key")):
        mine = f"DELETE FROM {table} WHERE {column} IN (SELECT key FROM episode WHERE namespace = ?)"
        connection.execute(mine, (namespace,))
    for table, name in (("cases", "cases"), ("outcome", "outcomes"), ("recall", "recalls"), ("episode", "episodes")):
        gone[name] = connection.execute(f"DELETE FROM {table} WHERE namespace = ?", (namespace,)).rowcount
    connection.execute("DELETE FROM solution WHERE namespace = ?", (namespace,))
    cases.note(connection, namespace, FORGOTTEN, 0)
    return gone
