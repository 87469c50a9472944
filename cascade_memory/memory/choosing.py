"""What one recall finds and chooses, before it is written down."""

from __future__ import annotations

import uuid

import numpy as np
from numpy.typing import NDArray

from cascade_memory.cycle.recall import recall
from cascade_memory.cycle.select import select
from cascade_memory.domain.showing import Showing
from cascade_memory.encoders.cosine import CosineEncoder
from cascade_memory.memory.chosen import Chosen
from cascade_memory.memory.partition import Partition
from cascade_memory.memory.parts import Parts
from cascade_memory.ports.pair_encoder import Query

_PLAIN = CosineEncoder()  # what a search needs
_SEARCH = Showing(abstain=False)


class Choosing:
    """Finds candidates in a namespace and lets its policy choose; the shadow, if there is one, says what it would do."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def choose(
        self,
        asked: Query,
        partition: Partition,
        *,
        k: int,
        size: int,
        where: object | None,
        showing: Showing | None,
        episode_id: str,
        arm: str,
    ) -> Chosen:
        """Find, then choose; without ``showing`` this is a search: by similarity alone."""
        recalled = recall(
            asked,
            index=partition.index,
            ledger=self._parts.ledger,
            size=size,
            among=self._among(partition, where, None if showing is None else size),
            verified_after=partition.verified_after(),
        )
        encoder, learned = partition.now
        policy = self._parts.fallback if showing is None else learned
        number, draw = partition.seed()
        seed = number * 2_654_435_761 + draw
        selection = select(
            asked,
            recalled.candidates,
            recalled.similarity,
            encoder=_PLAIN if showing is None else encoder,
            policy=policy,
            fallback=self._parts.fallback,
            k=k,
            showing=showing or _SEARCH,
            seed=seed,
        )
        opinion = None
        if showing is not None and partition.shadow is not None:
            opinion = partition.shadow.opinion(asked, recalled, selection.choice, k, abstain=showing.abstain, seed=seed)
        return Chosen(
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

    def _among(self, partition: Partition, where: object | None, newest: int | None) -> NDArray[np.int64] | None:
        """Return the keys to choose among; None is all of them. ``newest``: at most so many, where the ranker wants those."""
        ledger = self._parts.ledger
        among = None if where is None else ledger.filtered(partition.number, where)
        if self._parts.ranker.newest and newest is not None:
            return ledger.newest(partition.number, newest) if among is None else among[-newest:]
        return among
