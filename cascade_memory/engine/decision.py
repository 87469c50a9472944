"""The decision of a recall, the ledger row that records it, and the ``Recall`` that the caller gets."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.cycle.recall import Recalled
from cascade_memory.cycle.select import Selection
from cascade_memory.domain.recall import Candidate, Explanation, Recall, RecalledCase
from cascade_memory.domain.records import Column, Opinion, RecallRecord
from cascade_memory.domain.validation import MetadataValue
from cascade_memory.engine.request import RecallRequest
from cascade_memory.ports.ledger import Ledger
from cascade_memory.ports.policy import Choice, Slate

_NOTHING = np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """What one recall found and chose, and the id under which it was recorded."""

    id: str
    episode_id: str
    recalled: Recalled
    selection: Selection
    policy: str
    rewards: int
    encoder: str
    arm: str = "live"
    opinion: Opinion | None = None

    @property
    def shows(self) -> bool:
        """True if the agent gets to see the chosen cases."""
        choice = self.selection.choice
        return self.arm == "live" and choice is not None and not choice.abstained


def recall_record(
    request: RecallRequest, vector: NDArray[np.float32], decision: Decision, namespace: int, *, with_features: bool
) -> RecallRecord:
    """Build the ledger row of a recall: everything for a recall that is learned from, for a search only what was shown."""
    slate, choice, search = decision.selection.slate, decision.selection.choice, request.search
    shown = np.zeros(0, np.int64) if choice is None else choice.chosen
    kept = shown if search else slice(None)
    return RecallRecord(
        id=decision.id,
        episode_id=None if search else decision.episode_id,
        namespace=namespace,
        query=request.query,
        vector=vector,
        kind="search" if search else "recall",
        k=request.k,
        at=time.time(),
        policy=decision.policy,
        policy_version=0 if choice is None else choice.version,
        encoder=decision.encoder,
        candidates=decision.recalled.candidates.keys[kept],
        groups=slate.groups[kept],
        features=_NOTHING if search or not with_features else np.asarray(slate.features, np.float32),
        numbers=_NOTHING if choice is None else _numbers(slate, choice)[kept],
        chosen=np.arange(len(shown)) if search else shown,
        shown=decision.shows,
        baseline=math.nan if choice is None else choice.baseline,
        context=_NOTHING if search or choice is None else np.asarray(choice.context, np.float32),
        arm=decision.arm,
        holdout=request.exposure.holdout,
        thread=request.thread_id,
        shadow=decision.opinion,
        metadata=request.metadata,
        opens_episode=request.episode_id is None,
    )


def proposal_record(
    episode_id: str, namespace: int, query: str, vector: NDArray[np.float32], metadata: Mapping[str, MetadataValue]
) -> RecallRecord:
    """Build the row that opens an episode without a recall: its reward says nothing about showing or not showing a case."""
    nothing = np.zeros(0, np.int64)
    return RecallRecord(
        id=str(uuid.uuid4()),
        episode_id=episode_id,
        namespace=namespace,
        query=query,
        vector=vector,
        kind="search",
        k=0,
        at=time.time(),
        policy="none",
        policy_version=0,
        encoder="none",
        candidates=nothing,
        groups=nothing,
        features=_NOTHING,
        numbers=_NOTHING,
        chosen=nothing,
        shown=False,
        baseline=math.nan,
        context=_NOTHING,
        metadata=metadata,
    )


def _numbers(slate: Slate, choice: Choice) -> NDArray[np.float32]:
    numbers = np.empty((len(slate), len(Column)), np.float32)
    numbers[:, Column.SIMILARITY] = slate.similarity
    numbers[:, Column.VALUE] = choice.value
    numbers[:, Column.UNCERTAINTY] = choice.uncertainty
    numbers[:, Column.SCORE] = choice.score
    numbers[:, Column.UTILITY] = choice.utility
    numbers[:, Column.PROPENSITY] = choice.propensity
    return numbers


# -- what the caller gets ------------------------------------------------------------------------------------------------


def recall_view(decision: Decision, request: RecallRequest, ledger: Ledger, features: tuple[str, ...]) -> Recall:
    """Build the public ``Recall``: the cases that are shown, and why."""
    choice = decision.selection.choice
    return Recall(
        id=decision.id,
        episode_id=decision.episode_id,
        namespace=request.namespace,
        query=request.query,
        cases=_shown(decision, ledger),
        abstained=choice is not None and choice.abstained and decision.arm == "live",
        arm=decision.arm,
        template=request.template,
        explainer=lambda: _explanation(decision, features),
    )


def failed_recall(request: RecallRequest, error: str) -> Recall:
    """Build a recall without cases that names the error."""
    nothing = Explanation(candidates=(), abstained=False, baseline=math.nan, rewards=0, policy="none")
    return Recall(
        id=str(uuid.uuid4()),
        episode_id=request.episode_id or str(uuid.uuid4()),
        namespace=request.namespace,
        query=request.query,
        cases=(),
        abstained=False,
        error=error,
        template=request.template,
        explainer=lambda: nothing,
    )


def _shown(decision: Decision, ledger: Ledger) -> tuple[RecalledCase, ...]:
    choice, slate = decision.selection.choice, decision.selection.slate
    if choice is None or not decision.shows:
        return ()
    keys = [int(key) for key in decision.recalled.candidates.keys[choice.chosen]]
    stored = ledger.cases.by_key(keys)
    return tuple(
        RecalledCase(
            id=case.id,
            query=case.query,
            solution=case.solution,
            metadata=case.metadata,
            similarity=float(slate.similarity[i]),
            utility=float(choice.utility[i]),
            uncertainty=float(choice.uncertainty[i]),
            score=float(choice.score[i]),
        )
        for i, key in zip(choice.chosen.tolist(), keys, strict=True)
        if (case := stored.get(key)) is not None  # if it is None, another process has just forgotten the case
    )


def _explanation(decision: Decision, features: tuple[str, ...]) -> Explanation:
    choice = decision.selection.choice
    return Explanation(
        candidates=_candidates(decision),
        abstained=choice is not None and choice.abstained,
        baseline=math.nan if choice is None else choice.baseline,
        rewards=decision.rewards,
        policy=decision.policy,
        feature_names=(*features, "record"),
        arm=decision.arm,
    )


def _candidates(decision: Decision) -> tuple[Candidate, ...]:
    choice, slate = decision.selection.choice, decision.selection.slate
    if choice is None:
        return ()
    best = {int(i) for i in choice.chosen}
    columns = (slate.similarity, choice.value, choice.uncertainty, choice.score, choice.utility)
    standing = np.zeros((len(slate), 3)) if choice.standing is None else choice.standing
    parts = (
        np.zeros((len(slate), 0)) if choice.contributions is None else np.column_stack([choice.contributions, standing[:, 2]])
    )
    rows = zip(*(column.tolist() for column in (*columns, *standing.T)), parts.tolist(), strict=True)
    return tuple(
        Candidate(
            id=decision.recalled.ids[i],
            query=decision.recalled.candidates.texts[i],
            similarity=similarity,
            value=value,
            uncertainty=uncertainty,
            score=score,
            utility=utility,
            chosen=i in best,
            contributions=tuple(contributions),
            tried=tried,
            succeeded=succeeded,
            record=record,
        )
        for i, (similarity, value, uncertainty, score, utility, tried, succeeded, record, contributions) in enumerate(rows)
    )
