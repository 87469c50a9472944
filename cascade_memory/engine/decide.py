"""What one recall finds and chooses, before it is written down."""

from __future__ import annotations

import uuid

import numpy as np
from numpy.typing import NDArray

from cascade_memory.cycle.recall import recall
from cascade_memory.cycle.select import select
from cascade_memory.domain.calculating import calculating
from cascade_memory.domain.exposure import Exposure
from cascade_memory.encoders.cosine import CosineEncoder
from cascade_memory.engine.decision import Decision
from cascade_memory.engine.namespace_state import NamespaceState
from cascade_memory.engine.parts import Parts
from cascade_memory.ports.pair_encoder import Query

_PLAIN = CosineEncoder()  # what a search needs
_SEARCH = Exposure(abstain=False)


class Decider:
    """Finds candidates in a namespace and lets its policy choose; the shadow, if there is one, says what it would do."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def decide(
        self,
        query: Query,
        state: NamespaceState,
        *,
        k: int,
        size: int,
        where: object | None,
        exposure: Exposure | None,
        episode_id: str,
        arm: str,
    ) -> Decision:
        """Find, then choose; without ``exposure`` this is a search: by similarity alone."""
        with calculating():
            recalled = recall(
                query,
                index=state.index,
                ledger=self._parts.ledger,
                size=size,
                among=self._among(state, where, None if exposure is None else size),
                verified_after=state.verified_after(),
            )
            encoder, learned = state.now
            policy = self._parts.fallback if exposure is None else learned
            number, draw = state.seed()
            seed = number * 2_654_435_761 + draw
            selection = select(
                query,
                recalled.candidates,
                recalled.similarity,
                encoder=_PLAIN if exposure is None else encoder,
                policy=policy,
                fallback=self._parts.fallback,
                k=k,
                exposure=exposure or _SEARCH,
                seed=seed,
            )
            opinion = None
            if exposure is not None and state.shadow is not None:
                opinion = state.shadow.opinion(query, recalled, selection.choice, k, abstain=exposure.abstain, seed=seed)
        return Decision(
            id=str(uuid.uuid4()),
            episode_id=episode_id,
            arm=arm,
            recalled=recalled,
            selection=selection,
            policy=policy.name,
            rewards=policy.rewards,
            encoder=encoder.identity,
            opinion=opinion,
        )

    def _among(self, state: NamespaceState, where: object | None, newest: int | None) -> NDArray[np.int64] | None:
        """Return the keys to choose among; None is all of them. ``newest``: at most so many, where the ranker wants those."""
        ledger = self._parts.ledger
        among = None if where is None else ledger.filtered(state.namespace_id, where)
        if self._parts.ranker.newest and newest is not None:
            return ledger.newest(state.namespace_id, newest) if among is None else among[-newest:]
        return among
