"""Builds what the ledger records of a judgement: the outcome, its hindsight labels, and the case to retain.

Of the engine it needs no more than ``Settles`` lists.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.cycle.retain import case_from
from cascade_memory.cycle.reward import hindsight
from cascade_memory.domain.digests import digest
from cascade_memory.domain.episode import FAILED_BELOW, TRUSTED_SOURCES
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.records import NewCase, RecallRecord, Settlement, Unsettled
from cascade_memory.encoders.matchers import CarefulMatcher
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.part import EnginePart
from cascade_memory.engine.parts import Parts
from cascade_memory.engine.request import Judgement
from cascade_memory.errors import ContentChanged, InvalidInput


class Settles(Protocol):
    """The part of an engine that is needed to settle an episode."""

    parts: Parts
    matcher: CarefulMatcher
    judges: tuple[EnginePart, ...]  # parts of capabilities that add to what a judgement stores

    @property
    def learning(self) -> str:
        """When outcomes are learned from; "off" if never."""
        ...

    def namespace_id(self, namespace: str) -> int:
        """Return the id of a namespace."""
        ...

    def namespace_state(self, namespace: str) -> NamespaceState:
        """Return the state of a namespace."""
        ...

    def note_failure(self, step: str, error: Exception) -> None:
        """Count a failure that no exception reports to the caller."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for each text."""
        ...


def settlement(engine: Settles, judgement: Judgement) -> Settlement:
    """Return all that a judgement records; raise ``ContentChanged`` if it confirms content that is no longer what is stored."""
    ledger, unkept = engine.parts.ledger, judgement.unkept
    opens = judgement.opens
    episode = ledger.unsettled(judgement.episode_id, engine.namespace_id(judgement.namespace)) if opens is None else _new(opens)
    if judgement.confirms is not None:
        _check_confirmed(engine, judgement, episode)
    taken = None if judgement.action is None else judgement.action.takes_back
    before = None if taken is None else taken.before
    unseen = judgement.solution is None and episode.agents_words and judgement.confirms is None and before is None
    if unseen and unkept is None and judgement.source in TRUSTED_SOURCES:
        raise InvalidInput(
            f"only the agent itself reported the solution of episode {judgement.episode_id!r}: pass "
            "confirms=episode.fingerprint of the episode as you saw it (memory.review.reported()), or pass the right solution="
        )
    if before is not None:
        stored, unseen = before.solution, before.agents_words
    else:
        stored = episode.solution if judgement.solution is None else None
    # What an older version has stored may hold a secret; it must not be stored once more.
    solution = judgement.solution if stored is None else judgement.record.solution(stored)
    metadata = _metadata(engine, judgement)
    case: NewCase | None = None
    agreement: dict[int, NDArray[np.float32]] = {}
    if solution is None:
        unkept = unkept or "solution"
    elif unkept is None:
        solution_key = digest(engine.matcher.key(solution))
        if engine.parts.hindsight:
            agreement = hindsight(episode, solution, solution_key=solution_key, ledger=ledger, matcher=engine.matcher)
        case = case_from(
            episode,
            solution,
            solution_key=solution_key,
            agreement=agreement,
            source=judgement.source,
            episode_id=judgement.episode_id,
            metadata=metadata,
            case_text=judgement.record.case_text(judgement.case_text),
            embed=engine.embed,
            failed=engine.note_failure,
        )
    learns = judgement.source in TRUSTED_SOURCES and engine.learning != "off"
    teaches_failure = learns and judgement.value < FAILED_BELOW
    found: dict[str, Any] = {}
    for part in engine.judges if teaches_failure or episode.watched else ():
        found |= part.judged(judgement, episode, solution, unseen=unseen, teaches_failure=teaches_failure)
    return Settlement(
        episode_id=judgement.episode_id,
        namespace=episode.namespace,
        value=judgement.value,
        source=judgement.source,
        at=time.time() if before is None else before.at,
        solution=solution,
        learns=learns,
        case=case,
        agreement=agreement,
        overwrite=judgement.overwrite,
        metadata=metadata,
        agents_words=unseen,
        confirms=judgement.confirms,
        waits=judgement.waits,
        unkept=unkept if judgement.value > 0 else None,  # a failure is never stored, so it needs no reason
        action=judgement.action,
        actor=judgement.actor,
        channel=judgement.channel,
        ticket=judgement.ticket,
        cap=judgement.cap,
        opens=opens,
        found=found,
    )


def _new(opens: RecallRecord) -> Unsettled:
    """Return the data of an episode that its judgement both opens and settles."""
    return Unsettled(
        key=0, namespace=opens.namespace, query=opens.query, vector=opens.vector, solution=None, groups={}, similarity={}
    )


def _metadata(engine: Settles, judgement: Judgement) -> Mapping[str, MetadataValue]:
    """Return the judgement's metadata, and those metadata of the episode that turn out only now to hold secrets.

    The secrets are replaced by placeholders.
    """
    if judgement.record.made is None:  # no text of it may hold a secret
        return judgement.metadata
    found = engine.parts.ledger.episodes.one(judgement.episode_id)
    if found is None or found.reward is not None or not found.metadata:
        return judgement.metadata
    clean = judgement.record.metadata(found.metadata)
    changed = {name: value for name, value in clean.items() if name in found.metadata and value != found.metadata[name]}
    return {**changed, **judgement.metadata}


def _check_confirmed(engine: Settles, judgement: Judgement, read: Unsettled) -> None:
    """Refuse to confirm an agent's solution that is missing, or has changed since it was read."""
    found = engine.parts.ledger.episodes.one(judgement.episode_id)
    seen, corrects = str(judgement.confirms), judgement.action is not None and judgement.action.corrects
    if found is None or not found.is_as_seen(seen, whoever_judged=not corrects) or found.solution != read.solution:
        raise ContentChanged.of(judgement.episode_id, seen)
