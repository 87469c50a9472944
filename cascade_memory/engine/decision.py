"""What a recall found and chose, and the row in which that is written down."""

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
from cascade_memory.domain.records import Column, Opinion, RecallRecord
from cascade_memory.domain.validation import MetadataValue
from cascade_memory.engine.request import RecallRequest
from cascade_memory.ports.policy import Choice, Slate

_NOTHING = np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """What one recall found and chose, and under which id it was recorded."""

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
        """True where the agent gets to see what was chosen."""
        choice = self.selection.choice
        return self.arm == "live" and choice is not None and not choice.abstained


def recall_record(
    request: RecallRequest, vector: NDArray[np.float32], decision: Decision, namespace: int, *, with_features: bool
) -> RecallRecord:
    """Return the row of a recall: whole for one that will be learned from; of a search, what was shown."""
    slate, choice, search = decision.selection.slate, decision.selection.choice, request.search
    shown = np.zeros(0, np.int64) if choice is None else choice.chosen
    kept = np.arange(len(slate)) if not search else shown
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
    """Return the row that opens an episode in which nothing was recalled: its reward tells of no case, nor of having none."""
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
