"""Reading episodes, how their runs ended, and forgetting all of a namespace."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.records import FORGOTTEN
from cascade_memory.domain.trajectory import Solution
from cascade_memory.ledger import cases
from cascade_memory.ledger.packing import pack_solution
from cascade_memory.ledger.reading import fetched, metadata_if_readable, solution_if_readable
from cascade_memory.ledger.recalls import shown_cases

# What the host noted itself comes before what an agent reported.
_SELECT = """SELECT episode.key, episode.id, namespace.name, episode.query, episode.status, episode.arm, episode.opened_at,
  episode.closed_at, outcome.value, episode.source, coalesce(attempt.solution_kind, outcome.solution_kind),
  coalesce(attempt.solution, outcome.solution), (SELECT count(*) FROM recall WHERE recall.episode = episode.key),
  episode.thread, attempt.status, outcome.solution_kind, outcome.solution, outcome.agents_words,
  coalesce(outcome.metadata, episode.metadata)
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
        reported=solution_if_readable(row[15], row[16]) if row[17] else None,
        metadata=metadata_if_readable(row[18]),
    )


def forget_namespace(connection: sqlite3.Connection, namespace: int) -> dict[str, int]:
    """Delete everything of a namespace except its name, which recall may be using at this moment."""
    gone: dict[str, int] = {}
    for table in ("field", "outcome_field", "addition_field", "episode_field", "expired_field", "addition"):
        connection.execute(f"DELETE FROM {table} WHERE namespace = ?", (namespace,))
    connection.execute("DELETE FROM expired_vector WHERE key IN (SELECT key FROM expired WHERE namespace = ?)", (namespace,))
    expired = connection.execute("DELETE FROM expired WHERE namespace = ?", (namespace,)).rowcount
    keys = "(SELECT key FROM cases WHERE namespace = ?)"
    for table in ("case_text", "case_vector"):
        connection.execute(f"DELETE FROM {table} WHERE key IN {keys}", (namespace,))
    for table, column in (("attempt", "episode"), ("episode_vector", "key")):
        mine = f"DELETE FROM {table} WHERE {column} IN (SELECT key FROM episode WHERE namespace = ?)"
        connection.execute(mine, (namespace,))
    for table, name in (("cases", "cases"), ("outcome", "outcomes"), ("recall", "recalls"), ("episode", "episodes")):
        gone[name] = connection.execute(f"DELETE FROM {table} WHERE namespace = ?", (namespace,)).rowcount
    gone["cases"] += expired
    connection.execute("DELETE FROM solution WHERE namespace = ?", (namespace,))
    cases.note(connection, namespace, FORGOTTEN, 0)
    return gone
