"""Step 2, select: chooses which of the candidates to reuse, or none, as far as a recall may abstain, hold out or explore."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from cascade_memory.bandit.exploration import mixed
from cascade_memory.domain.display import quoted
from cascade_memory.domain.validation import check_share
from cascade_memory.errors import InvalidInput
from cascade_memory.ports.encoders import Candidates, PairEncoder, Query
from cascade_memory.ports.policy import Choice, Floats, Policy, Slate


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """Whether a recall may abstain, which share of episodes runs without memory, and which share of choices is random."""

    abstain: bool = True
    holdout: float = 0.0
    explore: float = 0.0

    def __post_init__(self) -> None:
        """Refuse shares that are not from 0 to below 1."""
        if type(self.abstain) is not bool:
            raise InvalidInput(f"abstain must be True or False, not {quoted(self.abstain)}")
        check_share(self.holdout, "holdout")
        check_share(self.explore, "explore")

    def arm_of(self, episode_id: str) -> str:
        """Choose the arm of a new episode by its id: every process chooses the same one, whatever was recalled before.

        >>> arms = [Exposure(holdout=0.2).arm_of(f"episode {i}") for i in range(1000)]
        >>> 150 < arms.count("holdout") < 250
        True
        """
        digest = hashlib.blake2b(episode_id.encode(), digest_size=8, person=b"cascade-holdout").digest()
        return "holdout" if int.from_bytes(digest, "big") < self.holdout * 2**64 else "live"


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
