"""What is read before an episode is settled: before the transaction, inside it, and once more if rewards are capped.

The outcomes that one actor reports beyond the hourly cap are stored, but nothing is learned from them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from cascade_memory.domain.records import Settlement
from cascade_memory.domain.trust import HOUR, MINUTE
from cascade_memory.errors import UnknownEpisode
from cascade_memory.ledger import running
from cascade_memory.ledger.cases import KNOWN, SAME, known_values
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.events import WATCHED

# The index ``outcome_counted`` has these rows and no others, so that a flood makes counting no slower.
COUNTED = """SELECT count(*), count(*) FILTER (WHERE at > ?) FROM outcome
  WHERE namespace = ? AND actor = ? AND source = ? AND at > ? AND coalesce(unkept, '') <> 'capped'"""
# Of an episode that is about to be settled, by its id: one row for each recall, and one where there is none.
UNSETTLED = f"""SELECT episode.key, episode.namespace, episode.query, episode_vector.vector,
    coalesce(attempt.solution_kind, outcome.solution_kind), coalesce(attempt.solution, outcome.solution),
    attempt.solution IS NULL AND outcome.solution IS NOT NULL AND agents_words = 1,
    ({WATCHED}), recall.key, recall.groups, recall.numbers
  FROM episode LEFT JOIN episode_vector ON episode_vector.key = episode.key
  LEFT JOIN attempt ON attempt.episode = episode.key
  LEFT JOIN outcome ON outcome.episode = episode.key AND withdrawn_at IS NULL
  LEFT JOIN recall ON recall.episode = episode.key AND recall.kind = 'recall'
  WHERE episode.id = ? ORDER BY recall.key"""
_OF_EPISODE = f"""episode.key, episode.status, episode.metadata, episode.actor, episode.channel,
  ({WATCHED}),
  EXISTS (SELECT 1 FROM attempt WHERE attempt.episode = episode.key), recall.candidates, recall.chosen"""
_FROM = "FROM episode LEFT JOIN recall ON recall.episode = episode.key AND recall.shown = 1"
_WHICH = "WHERE episode.id = ? ORDER BY recall.key"
_NOTED, _NAME = running.NOTED
_ALONE = f"SELECT {_OF_EPISODE} {_FROM} {_WHICH}"
_WITH_CASE = f"SELECT {_OF_EPISODE}, ({_NOTED}), {KNOWN} {_FROM} {SAME} {_WHICH}"


class Before(NamedTuple):
    """An episode as it is just before it is settled, and what is known of the case that its outcome may store."""

    key: int
    status: str
    metadata: str | None
    asked_by: tuple[str | None, str | None]  # who asked, and by which door
    watched: bool  # an observer has rows about it that a reward changes
    has_attempt: bool  # the end of its run was recorded
    shown: Sequence[Any]  # what its recalls have shown
    run: float | None = None  # the running time, where there may be a case
    known: Sequence[Any] | None = None


def read_before(connection: Connection, new: Settlement) -> Before:
    """Read what ``Before`` holds, inside the transaction that settles the episode; raise if the episode was just forgotten."""
    if new.case is None:
        rows = connection.execute(_ALONE, (new.episode_id,)).fetchall()
    else:
        values = (*_NAME, *known_values(new.case), new.episode_id)
        rows = connection.execute(_WITH_CASE, values).fetchall()
    if not rows:
        raise UnknownEpisode(f"episode {new.episode_id!r} was just forgotten")
    key, status, metadata, actor, channel, watched, has_attempt, *rest = rows[0]
    shown = [row[7:9] for row in rows if row[7] is not None]
    found = Before(key, status, metadata, (actor, channel), bool(watched), bool(has_attempt), shown)
    if new.case is None:
        return found
    return found._replace(run=running.now(connection, noted=rest[2]), known=[rest[3:]])


def capped(connection: Connection, new: Settlement) -> tuple[Settlement, int]:
    """Return an outcome as it is to be stored, and how many its actor has reported from its source within the last minute.

    Beyond the cap of ``new``, an outcome teaches nothing and stores no case. The count includes this outcome. Without a cap
    nothing is counted, and the count is 0.
    """
    if new.cap is None or new.actor is None:
        return new, 0
    values = (new.at - MINUTE, new.namespace, new.actor, new.source, new.at - HOUR)
    of_hour, of_minute = connection.execute(COUNTED, values).fetchone()
    if of_hour >= new.cap:
        new = dataclasses.replace(new, learns=False, case=None, agreement={}, unkept="capped")
    return new, of_minute + 1
