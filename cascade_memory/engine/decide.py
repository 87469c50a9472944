"""Finds the candidates of a recall and chooses among them, before the recall is written down."""

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
from cascade_memory.engine.request import RecallRequest
from cascade_memory.errors import EpisodeClosed, UnknownEpisode
from cascade_memory.ports.pair_encoder import Query

_PLAIN = CosineEncoder()  # a search needs no more
_SEARCH = Exposure(abstain=False)


class Decider:
    """Finds candidates in a namespace and lets its policy choose; the shadow, if there is one, records its own choice."""

    def __init__(self, parts: Parts, candidates: int) -> None:
        self._parts, self._candidates = parts, candidates

    def decide(self, request: RecallRequest, query: Query, state: NamespaceState) -> Decision:
        """Find candidates, then choose; a search chooses by similarity alone."""
        episode_id = request.episode_id or str(uuid.uuid4())
        arm = "live" if request.search else self._arm(request, episode_id)
        exposure = _SEARCH if request.search else request.exposure
        size = max(self._candidates, request.k)
        with calculating():
            recalled = recall(
                query,
                index=state.index,
                ledger=self._parts.ledger,
                size=size,
                among=self._among(state, request.where, None if request.search else size),
                verified_after=state.verified_after(),
            )
            encoder, learned = state.learner.now
            policy = self._parts.fallback if request.search else learned
            number, draw = state.seed()
            seed = number * 2_654_435_761 + draw
            selection = select(
                query,
                recalled.candidates,
                recalled.similarity,
                encoder=_PLAIN if request.search else encoder,
                policy=policy,
                fallback=self._parts.fallback,
                k=request.k,
                exposure=exposure,
                seed=seed,
            )
            opinion = None
            if state.shadow is not None and not request.search:
                choice = selection.choice
                opinion = state.shadow.opinion(query, recalled, choice, request.k, abstain=exposure.abstain, seed=seed)
        return Decision(
            id=str(uuid.uuid4()),
            episode_id=episode_id,
            arm=arm,
            recalled=recalled,
            selection=selection,
            policy=policy.name,
            rewards=policy.rewards,
            encoder=state.learner.identity,
            opinion=opinion,
        )

    def _arm(self, request: RecallRequest, episode_id: str) -> str:
        """Return the arm of an existing or new episode; raise if the episode takes no recalls."""
        episode = None if request.episode_id is None else self._parts.ledger.episodes.one(episode_id)
        if episode is None:
            return request.exposure.arm_of(episode_id)
        if episode.namespace != request.namespace:
            raise UnknownEpisode(f"episode {episode_id!r} belongs to another namespace")
        if episode.status != "open":
            raise EpisodeClosed(f"episode {episode_id!r} is {episode.status}; open another one to recall again")
        return episode.arm

    def _among(self, state: NamespaceState, where: object | None, newest: int | None) -> NDArray[np.int64] | None:
        """Return the keys of the cases to choose from, None for all; at most the ``newest`` ones if the ranker sets a limit."""
        ledger = self._parts.ledger
        among = None if where is None else ledger.filtered(state.namespace_id, where)
        if self._parts.ranker.newest and newest is not None:
            return ledger.newest(state.namespace_id, newest) if among is None else among[-newest:]
        return among
