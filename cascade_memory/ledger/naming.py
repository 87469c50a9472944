"""Finds what is to be forgotten: by cases, by metadata, by episode, or by who wrote it and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cascade_memory.domain.provenance import Wanted
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.declaring import Table
from cascade_memory.ledger.filters import ADDITIONS, CASES, EPISODES, EXPIRED_CASES, OUTCOMES, Filtered, compile_where
from cascade_memory.ledger.provenance import conditions
from cascade_memory.ledger.restoring import coming_back, decisions_of
from cascade_memory.ledger.rows import KEYS, fetched_for
from cascade_memory.ledger.schema import ADDED

# Outcomes with whose they are: one that nobody named reported belongs to whoever asked.
_REPORTED = """SELECT key, episode, judged FROM (
    SELECT outcome.key, outcome.episode, outcome.namespace, outcome.at, withdrawn_at IS NULL AS judged,
      coalesce(outcome.actor, episode.actor) AS actor,
      CASE WHEN outcome.actor IS NULL AND episode.actor IS NOT NULL THEN episode.channel ELSE outcome.channel END AS channel
    FROM outcome JOIN episode ON episode.key = outcome.episode) AS reported
  WHERE reported.namespace = ?"""
# Which of these episodes a person has judged who is named.
_BY_PERSON = f"""SELECT key, episode FROM outcome
  WHERE episode IN ({KEYS}) AND withdrawn_at IS NULL AND source = 'human' AND actor IS NOT NULL"""

Naming = Callable[[Connection], "Named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Keys of what is to be forgotten.

    A ``matching`` case is deleted only if nothing else verifies it; otherwise it gets another source. ``outcomes`` are outcomes
    on episodes of others; ``reopened`` are the episodes for which one of these outcomes counts now. ``verified`` are the cases
    verified by older outcomes that count again. ``decisions`` are ids in the audit log.
    """

    cases: frozenset[int] = frozenset()
    matching: frozenset[int] = frozenset()
    episodes: frozenset[int] = frozenset()
    additions: frozenset[int] = frozenset()
    outcomes: frozenset[int] = frozenset()
    reopened: frozenset[int] = frozenset()
    verified: frozenset[int] = frozenset()
    decisions: tuple[str, ...] = ()
    rows: tuple[tuple[str, frozenset[int]], ...] = ()  # keys of other tables that say who wrote their rows


def by_ids(connection: Connection, keys: Sequence[int]) -> Named:
    """Name cases, and every episode that ever ended in one of them: these episodes have the same query text."""
    episodes = {
        episode for key in keys for (episode,) in connection.execute("SELECT episode FROM outcome WHERE cases_key = ?", (key,))
    }
    return Named(cases=frozenset(keys), episodes=frozenset(episodes))


def by_where(connection: Connection, namespace: int, where: object) -> Named:
    """Name everything with matching metadata: cases, episodes (open or not), and additions by hand."""

    def matching(of: Filtered) -> frozenset[int]:
        return frozenset(key for (key,) in connection.execute(*compile_where(where, namespace, of)))

    judged = {
        connection.execute("SELECT episode FROM outcome WHERE key = ?", (outcome,)).fetchone()[0]
        for outcome in matching(OUTCOMES)
    }
    return Named(
        matching=matching(CASES) | matching(EXPIRED_CASES),
        episodes=matching(EPISODES) | judged,
        additions=matching(ADDITIONS),
    )


def by_episode(connection: Connection, episode_id: str) -> Named:
    """Name the episode that has this id; nothing if it does not exist."""
    rows = connection.execute("SELECT key FROM episode WHERE id = ?", (episode_id,)).fetchall()
    return Named(episodes=frozenset(key for (key,) in rows))


def by_source(connection: Connection, namespace: int, wanted: Wanted) -> Named:
    """Name what a source asked, reported, added and decided, and the cases that it was the first to make.

    An episode that another person has judged, and whose verdict names that person, stays, together with the verdict.
    """

    def keys(table: str, moment: str) -> frozenset[int]:
        where, values = conditions(wanted, table, moment)
        rows = connection.execute(f"SELECT key FROM {table} WHERE namespace = ? {where}", (namespace, *values))
        return frozenset(key for (key,) in rows)

    where, values = conditions(wanted, "reported", "at")
    reported = connection.execute(f"{_REPORTED} {where}", (namespace, *values)).fetchall()
    asked = keys("episode", "opened_at")
    own = {key for key, _, _ in reported}
    judged = {episode for key, episode in fetched_for(connection, _BY_PERSON, sorted(asked)) if key not in own}
    episodes = asked - judged
    others: list[Any] = [row for row in reported if row[1] not in episodes]
    return Named(
        matching=keys("cases", "created_at"),
        episodes=episodes,
        additions=keys("addition", "at"),
        outcomes=(outcomes := frozenset(key for key, _, _ in others)),
        reopened=frozenset(episode for _, episode, current in others if current),
        verified=frozenset(case for _, case in coming_back(connection, outcomes) if case is not None),
        decisions=tuple(decisions_of(connection, namespace, wanted)),
        rows=tuple((table.name, keys(table.name, table.dated or "")) for table in ADDED if _may_be_of(table, wanted)),
    )


def _may_be_of(table: Table, wanted: Wanted) -> bool:
    """Say whether a capability's table has what is asked for: the actor and, if they are asked for, channel, trust and time."""
    asked = [("actor", True), ("channel", wanted.channel is not None), ("trust", wanted.trust is not None)]
    asked.append((table.dated or "", wanted.since is not None or wanted.until is not None))
    return all(name in table.names for name, is_asked in asked if is_asked)
