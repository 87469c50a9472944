"""Step 2, select: chooses which of the candidates to reuse, or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cascade_memory.bandit.epsilon_mix import mixed
from cascade_memory.domain.exposure import Exposure
from cascade_memory.ports.pair_encoder import Candidates, PairEncoder, Query
from cascade_memory.ports.policy import Choice, Floats, Policy, Slate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """The slate, the choice made from it, and the failure that occurred (None if there was none)."""

    slate: Slate
    choice: Choice | None  # None if there were no candidates
    failure: Exception | None = None


def select(
    query: Query,
    candidates: Candidates,
    similarity: Floats,
    *,
    encoder: PairEncoder,
    policy: Policy,
    fallback: Policy,
    k: int,
    exposure: Exposure,
    seed: int,
    floors: Floats | None = None,
) -> Selection:
    """Choose k of the candidates. If the ranker fails, similarity chooses instead, for this recall only."""
    if not len(candidates.keys):
        return Selection(slate=_slate(query, candidates, similarity, np.zeros((0, 0), np.float32)), choice=None)
    try:
        features = encoder.encode(query, candidates, np.asarray(similarity, np.float32))
        slate = _slate(query, candidates, similarity, features, floors)
        choice = policy.select(slate, k, abstain=exposure.abstain, seed=seed)
        if exposure.explore:
            choice = mixed(policy, slate, choice, k, epsilon=exposure.explore, abstain=exposure.abstain, seed=seed)
        return Selection(slate=slate, choice=choice)
    except Exception as error:  # noqa: BLE001 - a failing ranker must not break the agent
        slate = _slate(query, candidates, similarity, np.zeros((len(candidates), 0), np.float32))
        choice = fallback.select(slate, k, abstain=False, seed=seed)
        return Selection(slate=slate, choice=choice, failure=error)


def _slate(query: Query, candidates: Candidates, similarity: Floats, features: Floats, floors: Floats | None = None) -> Slate:
    return Slate(features=features, similarity=similarity, groups=candidates.groups, query=query.vector, floors=floors)
