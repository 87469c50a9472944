"""Reads in a ledger who made cases and who reported outcomes, and puts the cases of an actor into quarantine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.capabilities.sources.transaction import decided_about
from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.records import Column
from cascade_memory.ledger import action_log
from cascade_memory.ledger.case_states import AUTHOR, set_held
from cascade_memory.ledger.compaction import NUMBERS
from cascade_memory.ledger.database import Database
from cascade_memory.ledger.rows import KEYS, fetched_for, unpack_floats, unpack_ints, usable

_REPORTER = "CASE WHEN outcome.source = 'human' THEN NULL ELSE coalesce(outcome.actor, episode.actor) END"
_TESTIMONY = f"""SELECT outcome.key, recall.key, {_REPORTER},
    outcome.value, recall.candidates, recall.chosen, recall.numbers, recall.shown, recall.agreement
  FROM outcome JOIN episode ON episode.key = outcome.episode
    JOIN recall ON recall.episode = outcome.episode AND recall.kind = 'recall'
  WHERE outcome.learns = 1 AND outcome.withdrawn_at IS NULL AND"""
# Who verified cases that are not there any more: they made room, or were not verified for too long.
_OUTCOMES = f"""SELECT outcome.cases_key, outcome.at, outcome.source, coalesce(episode.actor, outcome.actor)
  FROM outcome JOIN episode ON episode.key = outcome.episode
  WHERE outcome.cases_key IN ({KEYS}) AND outcome.withdrawn_at IS NULL ORDER BY outcome.at, outcome.key"""
_ADDITIONS = f"SELECT cases_key, at, source, actor FROM addition WHERE cases_key IN ({KEYS}) ORDER BY at, key"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Testimony:
    """An outcome, read as what its reporter says about the cases that one recall found.

    ``reporter`` is the actor who reported it; None stands for a person, or for the host itself. ``recall`` is the recall's key.
    ``predicted`` is the success that was expected of the shown cases, nan if none were shown.
    """

    outcome: int
    recall: int
    reporter: str | None
    reward: float
    predicted: float
    cases: NDArray[np.int64]
    chosen: NDArray[np.int64]
    shown: bool
    agreement: NDArray[np.floating[Any]] | None


class ActorRows:
    """What a ledger says about actors, and the decisions about them."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def any(self, namespace: int) -> bool:
        """Say whether any case of a namespace names the actor who made it."""
        with self._connections.read() as connection:
            query = "SELECT 1 FROM cases WHERE namespace = ? AND actor IS NOT NULL LIMIT 1"
            return connection.execute(query, (namespace,)).fetchone() is not None

    def authors(self, keys: Sequence[int]) -> dict[int, str]:
        """Return the authors of these cases, by key; also of cases that were evicted or have expired since.

        The author is the actor who made the case. A case has no author here if nobody is named, or if a person vouches for the
        case.
        """
        with self._connections.read() as connection:
            rows = fetched_for(connection, f"SELECT cases.key, {AUTHOR} FROM cases WHERE cases.key IN ({KEYS})", keys)
            there = {key for key, _ in rows}
            gone = [key for key in keys if key not in there]
            told = fetched_for(connection, _OUTCOMES, gone) + fetched_for(connection, _ADDITIONS, gone)
        return {key: actor for key, actor in [*rows, *_first_of(told)] if isinstance(actor, str)}

    def testimonies(self, namespace: int, limit: int, *, until: int = 2**62) -> list[Testimony]:
        """Return the last ``limit`` outcomes that are learned from, oldest first, one entry per recall.

        ``until`` is the key of the last outcome to look at.
        """
        learned = "namespace = ? AND learns = 1 AND withdrawn_at IS NULL AND key <= ?"
        first = f"SELECT key FROM outcome WHERE {learned} ORDER BY key DESC LIMIT 1 OFFSET ?"
        with self._connections.read() as connection:
            oldest = connection.execute(first, (namespace, until, limit - 1)).fetchone()
            rows = connection.execute(
                f"""{_TESTIMONY} outcome.namespace = ? AND outcome.key >= ? AND outcome.key <= ?
                    ORDER BY outcome.key, recall.key""",
                (namespace, 0 if oldest is None else oldest[0], until),
            ).fetchall()
        return usable(rows, _read)

    def testimony(self, outcome: int) -> list[Testimony]:
        """Return one outcome, one entry per recall; empty if it is not learned from."""
        with self._connections.read() as connection:
            rows = connection.execute(f"{_TESTIMONY} outcome.key = ? ORDER BY recall.key", (outcome,)).fetchall()
        return usable(rows, _read)

    def decided(self, namespace: int) -> Mapping[str, bool]:
        """Return the actors about whom there is a decision: True if they are in quarantine, False if they were released."""
        with self._connections.read() as connection:
            return decided_about(connection, namespace)

    def quarantine(self, namespace: int, actor: str, action: NewAction, *, unless_decided: bool = False) -> int | None:
        """Put an actor's present and later cases into quarantine, durably; return how many cases that hides.

        Return None if the actor was in quarantine already and no other case had to be hidden, or, with ``unless_decided``, if
        any decision about the actor stands.
        """
        return self._decide(namespace, actor, action, quarantined=True, unless_decided=unless_decided)

    def release(self, namespace: int, actor: str, action: NewAction) -> int | None:
        """End the quarantine of an actor, durably; return how many of its cases are thus shown again.

        Return None if the actor was released before and no case had to be shown.
        """
        return self._decide(namespace, actor, action, quarantined=False)

    def _decide(
        self, namespace: int, actor: str, action: NewAction, *, quarantined: bool, unless_decided: bool = False
    ) -> int | None:
        with self._connections.write(durable=True) as connection:
            before = decided_about(connection, namespace).get(actor)
            if unless_decided and before is not None:  # a person may have been faster, in another process
                return None
            moved = set_held(connection, namespace, actor, held=quarantined, tells=before is not quarantined)
            if not moved and before is quarantined:
                return None
            action_log.write(connection, namespace, action, subject=actor)
            return moved


def _first_of(told: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return (key, author) for each case that is not stored any more: the author is the actor who verified it first.

    A case that a person ever verified has no author, and is left out. ``told`` are rows (key, moment, source, actor), one for
    each verification.
    """
    by_person = {key for key, _, source, _ in told if source == "human"}
    first: dict[int, tuple[float, Any]] = {}
    for key, at, _, actor in told:
        if key not in first or at < first[key][0]:
            first[key] = (at, actor)
    return [(key, actor) for key, (_, actor) in first.items() if key not in by_person]


def _read(row: Sequence[Any]) -> Testimony:
    outcome, recall, reporter, reward, candidates, chosen, numbers, shown, agreement = row
    keys, places = unpack_ints(candidates), unpack_ints(chosen)
    if len(places) and not 0 <= places.min() <= places.max() < len(keys):
        raise ValueError(f"the arrays of recall {recall} do not belong together")
    predicted = math.nan
    if shown and len(places) and numbers:
        predicted = float(unpack_floats(numbers).reshape(-1, NUMBERS)[places[0], Column.UTILITY])
    labels = unpack_floats(agreement) if agreement is not None and len(agreement) == 4 * len(keys) else None
    return Testimony(
        outcome=int(outcome),
        recall=int(recall),
        reporter=reporter if isinstance(reporter, str) else None,
        reward=min(max(float(reward), 0.0), 1.0),
        predicted=predicted,
        cases=keys,
        chosen=places,
        shown=bool(shown) and len(places) > 0,
        agreement=labels,
    )
