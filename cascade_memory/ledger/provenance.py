"""The part of the ledger that says who wrote what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from cascade_memory.domain.provenance import ChangedCase, SourceRow, Wanted, level_of
from cascade_memory.ledger.database import Database
from cascade_memory.ledger.rows import check_columns, fetched, usable

_Key: TypeAlias = "tuple[str | None, str | None]"

_BEGINNING = 200  # characters of a task
_CASES = """SELECT actor, channel, count(*), sum(shown), sum(succeeded), min(created_at), max(created_at) FROM cases
  WHERE namespace = ? GROUP BY actor, channel"""
_EPISODES = """SELECT actor, channel, count(*), min(opened_at), max(opened_at) FROM episode
  WHERE namespace = ? GROUP BY actor, channel"""
# An outcome that nobody named reported belongs to whoever asked.
_OUTCOMES = """SELECT who, door, count(*), avg(value), min(at), max(at) FROM (
    SELECT coalesce(outcome.actor, episode.actor) AS who, value, at,
      CASE WHEN outcome.actor IS NULL AND episode.actor IS NOT NULL THEN episode.channel ELSE outcome.channel END AS door
    FROM outcome JOIN episode ON episode.key = outcome.episode WHERE outcome.namespace = ? AND withdrawn_at IS NULL
  ) AS reported GROUP BY who, door"""


class SQLProvenance:
    """Reads who wrote cases, episodes and outcomes; it writes nothing."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def cases(
        self, namespace: int, limit: int, wanted: Wanted, *, after: int | None = None, newest_first: bool = False
    ) -> list[int]:
        """Return the next ``limit`` keys of the wanted cases that follow the key ``after``, oldest or newest first."""
        compared, order, start = ("<", "DESC", 2**62) if newest_first else (">", "ASC", 0)
        where, values = conditions(wanted, "cases", "created_at")
        query = f"SELECT key FROM cases WHERE namespace = ? AND key {compared} ? {where} ORDER BY key {order} LIMIT ?"
        with self._connections.read() as connection:
            rows = connection.execute(query, (namespace, start if after is None else after, *values, limit))
            return [key for (key,) in rows]

    def sources(self, namespace: int) -> list[SourceRow]:
        """Return a row for each actor and channel, those with the most cases first."""
        with self._connections.read() as connection:
            cases = fetched(connection, _CASES, (namespace,))
            episodes = fetched(connection, _EPISODES, (namespace,))
            outcomes = fetched(connection, _OUTCOMES, (namespace,))
        found: dict[_Key, SourceRow] = {}

        def add(row: Sequence[Any], **counted: Any) -> None:
            check_columns(maybe=row[:2], moments=row[-2:])
            key = (row[0], row[1])
            known = found.get(key) or SourceRow(actor=row[0], channel=row[1], first_seen=row[-2])
            seen = {"first_seen": min(known.first_seen, row[-2]), "last_seen": max(known.last_seen, row[-1])}
            found[key] = replace(known, **counted, **seen)

        for row in cases:
            add(row, cases=int(row[2]), shown=int(row[3]), succeeded=float(row[4]))
        for row in episodes:
            add(row, episodes=int(row[2]))
        for row in outcomes:
            add(row, outcomes=int(row[2]), mean_reward=float(row[3]))
        return sorted(found.values(), key=lambda one: (-one.cases, -one.episodes, one.actor or "", one.channel or ""))

    def came(self, namespace: int, wanted: Wanted) -> list[ChangedCase]:
        """Return the wanted cases that were stored, oldest first."""
        where, values = conditions(wanted, "cases", "created_at")
        query = f"""SELECT id, substr(query, 1, {_BEGINNING}), actor, channel, source, trust, created_at, 'stored' FROM cases
                    WHERE namespace = ? {where} ORDER BY key"""
        with self._connections.read() as connection:
            return usable(fetched(connection, query, (namespace, *values)), _changed)

    def went(self, namespace: int, wanted: Wanted) -> list[ChangedCase]:
        """Return the wanted cases that were set aside and can still be brought back, oldest first."""
        query = f"""SELECT id, substr(query, 1, {_BEGINNING}), expired_at, why, record FROM expired
                    WHERE namespace = ? ORDER BY key"""
        with self._connections.read() as connection:
            rows = usable(fetched(connection, query, (namespace,)), _set_aside)
        return [one for one in rows if wanted.fits(one)]


def conditions(wanted: Wanted, table: str, moment: str) -> tuple[str, list[Any]]:
    """Return further conditions on the rows of a table, beginning with AND, and their parameters.

    >>> conditions(Wanted(actor="ann", since=5.0), "cases", "created_at")
    ('AND cases.actor = ? AND cases.created_at >= ?', ['ann', 5.0])
    """
    parts, values = list[str](), list[Any]()
    if wanted.actor == "":
        parts.append(f"{table}.actor IS NULL")
    for column, operator, value in (
        ("actor", "=", wanted.actor or None),
        ("channel", "=", wanted.channel),
        (moment, ">=", wanted.since),
        (moment, "<", wanted.until),
        ("trust", "=", wanted.trust),
    ):
        if value is not None:
            parts.append(f"{table}.{column} {operator} ?")
            values.append(value)
    return " ".join(f"AND {part}" for part in parts), values


def _changed(row: Sequence[Any]) -> ChangedCase:
    case_id, query, actor, channel, source, trust, at, why = row
    check_columns(texts=(case_id, query, source, why), maybe=(actor, channel), numbers=(trust,), moments=(at,))
    return ChangedCase(
        id=case_id, query=query, actor=actor, channel=channel, source=source, trust=int(trust), at=float(at), why=why
    )


def _set_aside(row: Sequence[Any]) -> ChangedCase:
    case_id, query, at, why, record = row
    rest = json.loads(record)
    source = str(rest["source"])
    who = (rest.get("actor"), rest.get("channel"), source, rest.get("trust", level_of(source)))
    return _changed((case_id, query, *who, at, why))
