"""The shadow: a second ranker that sees every slate and learns from every outcome, but whose choice is never shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cascade_memory.bandit.exploration import context_of
from cascade_memory.cycle.learn import WINDOW, needs_rebuild
from cascade_memory.cycle.recall import Recalled
from cascade_memory.domain.records import Change, Opinion
from cascade_memory.learning.ranker import Ranker
from cascade_memory.ports.encoders import Candidates, PairEncoder, Query
from cascade_memory.ports.policy import Choice, Slate

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_NONE = np.zeros(0, np.float32)


class Shadow:
    """Learns from the outcomes of the live policy's choices, with the features of its own encoder.

    It has no snapshot: when a folder is opened, it learns again from the last ``WINDOW`` outcomes in the ledger.
    """

    def __init__(
        self,
        ranker: Ranker,
        namespace_id: int,
        encoder: PairEncoder,
        ledger: Ledger,
        note_failure: Callable[[str, Exception], object],
    ) -> None:
        self._ranker, self._namespace_id, self._ledger = ranker, namespace_id, ledger
        self._encoder, self.policy = encoder, ranker.policy()
        self._known = 0  # the last outcome in the policy's last rebuild
        self._note_failure = note_failure

    def opinion(
        self, query: Query, recalled: Recalled, live: Choice | None, k: int, *, abstain: bool, seed: int
    ) -> Opinion | None:
        """Return which candidates the shadow would have shown instead of the choice ``live``; None if the shadow fails."""
        try:
            return self._opinion(query, recalled, live, k, abstain=abstain, seed=seed)
        except Exception as error:  # noqa: BLE001 - a failing shadow must not fail the recall
            self._note_failure("shadow", error)
            return None

    def _opinion(self, query: Query, recalled: Recalled, live: Choice | None, k: int, *, abstain: bool, seed: int) -> Opinion:
        policy, candidates, similarity = self.policy, recalled.candidates, recalled.similarity
        if live is None:
            return Opinion(policy=policy.name, places=_NONE, propensity=_NONE, features=_NONE.reshape(0, 0), context=_NONE)
        features = np.asarray(self._encoder.encode(query, candidates, similarity), np.float32)
        slate = Slate(features=features, similarity=similarity, groups=candidates.groups, query=query.vector)
        choice = policy.select(slate, k, abstain=abstain, seed=seed)
        places = np.zeros(len(slate), np.float32)
        if not choice.abstained:
            places[choice.chosen] = np.arange(1, len(choice.chosen) + 1)
        return Opinion(
            policy=policy.name,
            places=places,
            propensity=np.asarray(choice.propensity, np.float32),
            features=features,
            context=np.asarray(context_of(policy, slate, choice, live.chosen), np.float32),
        )

    # -- learning ----------------------------------------------------------------------------------------------------

    def retain(self, rows: Candidates) -> None:
        """Pass new cases to the encoder."""
        self._encoder.retain(rows)

    def rebuild(self) -> None:
        """Learn again from the ledger; meanwhile the old policy gives its opinions."""
        try:
            self._rebuild()
        except Exception as error:  # noqa: BLE001 - as above
            self._note_failure("shadow", error)

    def _rebuild(self) -> None:
        policy = self._ranker.policy()
        known = self._ledger.lessons.last_outcome()
        policy.rebuild(self._ledger.lessons.history(self._namespace_id, WINDOW, until=known, shadow=policy.name))
        self.policy, self._known = policy, known

    def learn(self, todo: Sequence[Change], new: Sequence[Candidates], remaining: Iterable[Candidates]) -> None:
        """Learn from entries of the log and new cases; ``remaining`` are all cases, for an encoder that must forget some."""
        try:
            self._learn(todo, new, remaining)
        except Exception as error:  # noqa: BLE001 - as above
            self._note_failure("shadow", error)

    def _learn(self, todo: Sequence[Change], new: Sequence[Candidates], remaining: Iterable[Candidates]) -> None:
        if any(change.changes_encoder for change in todo):
            encoder = self._encoder.emptied()
            for rows in remaining:
                encoder.retain(rows)
            self._encoder = encoder
        else:
            for rows in new:
                self._encoder.retain(rows)
        if needs_rebuild(todo):
            self._rebuild()
            return
        for change in todo:
            if change.settles and change.ref > self._known:
                self.policy.update(self._ledger.lessons.feedback(change.ref, shadow=self.policy.name))
