"""Builds the row of an episode that is opened without a recall, and the ``Recall`` of a recall that failed."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cascade_memory.cycle.chat_turns import turns
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.records import RecallRecord
from cascade_memory.domain.trust import ByWhom
from cascade_memory.engine.request import RecallRequest

_NOTHING = np.zeros(0, np.float32)


def proposal_record(
    episode_id: str,
    namespace: int,
    query: str,
    vector: NDArray[np.float32],
    metadata: Mapping[str, MetadataValue],
    *,
    by: ByWhom,
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
        actor=by.actor,
        channel=by.channel,
    )


def failed_recall(request: RecallRequest, error: str) -> Recall:
    """Build a recall without cases that names the error."""
    from cascade_memory.domain.explanation import Explanation

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
        as_turns=turns,
        explainer=lambda: nothing,
        memory=None if request.search else request.memory,
    )
