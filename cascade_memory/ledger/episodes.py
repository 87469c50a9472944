"""Reading episodes, and forgetting them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.records import FORGOTTEN
from cascade_memory.ledger import cases
from cascade_memory.ledger.packing import unpack_solution
from cascade_memory.ledger.recalls import shown_cases

_SELECT = """SELECT episode.key, episode.id, namespace.name, episode.query, episode.status, episode.arm, episode.opened_at,
  episode.closed_at, outcome.value, episode.source, outcome.solution_kind, outcome.solution,
  (SELECT count(*) FROM recall WHERE recall.episode = episode.key)
  FROM episode JOIN namespace ON namespace.id = episode.namespace
  LEFT JOIN outcome ON outcome.episode = episode.key AND outcome.withdrawn_at IS NULL"""


def one(connection: sqlite3.Connection, episode_id: str) -> Episode | None:
    """Return one episode."""
    row = connection.execute(f"{_SELECT} WHERE episode.id = ?", (episode_id,)).fetchone()
    return None if row is None else _episode(connection, row)


def listed(connection: sqlite3.Connection, namespace: int | None, status: str | None, before: float | None) -> list[Episode]:
    """Return episodes, oldest first, by namespace, status, and time of opening."""
    rows = connection.execute(
        f"""{_SELECT} WHERE (?1 IS NULL OR episode.namespace = ?1) AND (?2 IS NULL OR episode.status = ?2)
            AND (?3 IS NULL OR episode.opened_at < ?3) ORDER BY episode.key""",
        (namespace, status, before),
    ).fetchall()
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
        solution=unpack_solution(row[10], row[11]),
        recalls=row[12],
        cases=tuple(ids),
    )


def forget(connection: sqlite3.Connection, keys: Sequence[int], *, episodes_too: bool) -> dict[str, int]:
    """Delete cases, and the episodes that ended in them: their queries say the same."""
    gone = {"cases": 0, "episodes": 0, "recalls": 0, "outcomes": 0}
    for key in keys:
        made_by = connection.execute("SELECT episode FROM outcome WHERE cases_key = ?", (key,)).fetchall()
        if episodes_too:
            for (episode,) in set(made_by):
                _forget_episode(connection, episode, gone)
        else:
            connection.execute("UPDATE outcome SET cases_key = NULL WHERE cases_key = ?", (key,))
        if connection.execute("SELECT 1 FROM cases WHERE key = ?", (key,)).fetchone():
            cases.delete(connection, key)
            gone["cases"] += 1
    return gone


def forget_episode(connection: sqlite3.Connection, episode_id: str) -> dict[str, int]:
    """Delete an episode and the case it made."""
    gone = {"cases": 0, "episodes": 0, "recalls": 0, "outcomes": 0}
    row = connection.execute("SELECT key FROM episode WHERE id = ?", (episode_id,)).fetchone()
    if row is not None:
        made = connection.execute("SELECT key FROM cases WHERE episode = ?", (row[0],)).fetchall()
        _forget_episode(connection, row[0], gone)
        for (key,) in made:
            cases.delete(connection, key)
            gone["cases"] += 1
    return gone


def _forget_episode(connection: sqlite3.Connection, episode: int, gone: dict[str, int]) -> None:
    (namespace,) = connection.execute("SELECT namespace FROM episode WHERE key = ?", (episode,)).fetchone()
    connection.execute("UPDATE cases SET episode = NULL WHERE episode = ?", (episode,))
    gone["outcomes"] += connection.execute("DELETE FROM outcome WHERE episode = ?", (episode,)).rowcount
    gone["recalls"] += connection.execute("DELETE FROM recall WHERE episode = ?", (episode,)).rowcount
    gone["episodes"] += connection.execute("DELETE FROM episode WHERE key = ?", (episode,)).rowcount
    cases.note(connection, namespace, FORGOTTEN, episode)


def forget_namespace(connection: sqlite3.Connection, namespace: int) -> dict[str, int]:
    """Delete everything of a namespace except its name, which recall may be using at this moment."""
    gone = {
        table: connection.execute(f"DELETE FROM {table} WHERE namespace = ?", (namespace,)).rowcount for table in ("field",)
    }
    keys = "(SELECT key FROM cases WHERE namespace = ?)"
    for table in ("case_text", "case_vector"):
        connection.execute(f"DELETE FROM {table} WHERE key IN {keys}", (namespace,))
    for table, name in (("cases", "cases"), ("outcome", "outcomes"), ("recall", "recalls"), ("episode", "episodes")):
        gone[name] = connection.execute(f"DELETE FROM {table} WHERE namespace = ?", (namespace,)).rowcount
    connection.execute("DELETE FROM solution WHERE namespace = ?", (namespace,))
    del gone["field"]
    cases.note(connection, namespace, FORGOTTEN, 0)
    return gone
