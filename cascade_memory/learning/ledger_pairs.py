"""Learns from pairs whose texts are read from the ledger: a task, and a case that was shown for it.

A trainable encoder gets the texts through an adapter, since ``NeuralBandit`` names pairs by (recall, case). A policy on the
frozen features of a reranker gets features that are not logged, but computed again from the texts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from cascade_memory.bandit.neural_bandit import Lesson, Ref, on_chosen_pairs
from cascade_memory.cycle.learn import learn
from cascade_memory.domain.records import Change
from cascade_memory.learning.ranker import Ranker
from cascade_memory.ports.encoders import Candidates, Pair, PairEncoder, TrainableEncoder
from cascade_memory.ports.policy import Feedback, Floats, Policy, State

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_HISTORY_AT_ONCE = 64  # outcomes that are learned again between two looks at what is new


class LedgerPairEncoder:
    """Looks up the texts of pairs and passes them to the encoder."""

    def __init__(self, encoder: TrainableEncoder, ledger: Ledger, loss: str) -> None:
        self.encoder, self._ledger, self._loss = encoder, ledger, loss

    def features(self, refs: Sequence[Ref]) -> Floats:
        """Encode each pair as one row; the row is nan if the recall or the case was deleted."""
        pairs = pairs_of(refs, self._ledger)
        known = [place for place, pair in enumerate(pairs) if pair is not None]
        rows = np.full((len(refs), len(self.encoder.head)), np.nan)
        if known:
            rows[known] = self.encoder.encode_pairs([pair for pair in pairs if pair is not None])
        return rows

    def trained(self, lessons: Sequence[Lesson], theta: Floats, *, joint: bool) -> tuple[LedgerPairEncoder, Floats]:
        """Train one step on these pairs; return the new encoder and the head."""
        pairs = pairs_of([ref for ref, _, _ in lessons], self._ledger)
        known = [(pair, label, weight) for pair, (_, label, weight) in zip(pairs, lessons, strict=True) if pair is not None]
        if not known:
            return self, theta
        labels, weights = (np.array([lesson[column] for lesson in known]) for column in (1, 2))
        texts = [pair for pair, _, _ in known]
        encoder, theta = self.encoder.trained(texts, labels, weights, theta, joint=joint, loss=self._loss)
        return LedgerPairEncoder(encoder, self._ledger, self._loss), theta


def pairs_of(refs: Sequence[Ref], ledger: Ledger) -> list[Pair | None]:
    """Look up the texts of pairs; None for pairs that were deleted."""
    queries = {recall: ledger.lessons.asked(recall) for recall in {recall for recall, _ in refs}}
    cases = ledger.candidates(np.array(sorted({case for _, case in refs}), np.int64))
    found: list[Pair | None] = []
    for recall, case in refs:
        row, stored = queries[recall], cases.get(case)
        found.append(None if row is None or stored is None else Pair(query=row[0], text=stored[0], head=stored[1]))
    return found


def chosen_refs(outcome: Feedback, ledger: Ledger) -> list[Ref]:
    """Return the pairs of an outcome's chosen cases."""
    row = ledger.lessons.asked(outcome.key)
    if row is None or len(row[1]) != len(outcome.slate):  # a candidate was forgotten, so the places no longer match
        return []
    return [(outcome.key, int(row[1][place])) for place in outcome.chosen]


def hindsight_lessons(outcome: Feedback, ledger: Ledger, most: int) -> list[Lesson]:
    """Label the ``most`` most similar candidates that were not chosen.

    The label of a candidate says how far its solution agrees with the verified one.
    """
    row = ledger.lessons.asked(outcome.key) if most and outcome.agreement is not None else None
    if row is None or outcome.agreement is None or len(row[1]) != len(outcome.slate):
        return []
    others = [place for place in range(len(outcome.slate)) if place not in outcome.chosen.tolist()]
    known = [place for place in others if not np.isnan(outcome.agreement[place])][:most]
    return [((outcome.key, int(row[1][place])), float(outcome.agreement[place]), outcome.weight) for place in known]


class FrozenPairTrainer:
    """Trains only the policy. A history is learned again in parts, since encoding its pairs may take minutes on a CPU.

    The features are not logged: 32 vectors of 768 numbers would take 98 kB per recall. The encoder has the vectors of recent
    pairs in its cache.
    """

    takes_long = True

    def __init__(self, ranker: Ranker, encoder: TrainableEncoder, ledger: Ledger) -> None:
        self._ranker, self._ledger = ranker, ledger
        self._encoder = encoder
        self._history: deque[Feedback] = deque()
        self._waiting: list[Change] = []  # until the history is learned
        self.now: tuple[PairEncoder, Policy] = (encoder, ranker.policy())

    @property
    def waiting_since(self) -> int | None:
        """The first log entry that is not learned yet; 0 while older outcomes are learned again, None if all is learned."""
        if self._history:
            return 0
        return self._waiting[0].seq if self._waiting else None

    def expect(self, changes: Sequence[Change]) -> None:
        """Queue these entries of the log for ``learn``."""
        self._waiting += changes

    def learn(self, changes: Sequence[Change]) -> None:
        """Queue these entries of the log; then learn a part of the history or, if none of it is left, all queued entries."""
        self._waiting += changes
        if self._history:
            some = [self._history.popleft() for _ in range(min(_HISTORY_AT_ONCE, len(self._history)))]
            self.now[1].update(self._read(some))
            return
        todo, self._waiting = self._waiting, []
        learn(todo, ledger=self._ledger, policy=self.now[1], read=self._read)

    def _read(self, outcomes: Sequence[Feedback]) -> list[Feedback]:
        """Reduce outcomes to their chosen pairs, with features; an outcome whose pairs were deleted teaches nothing."""
        refs = [chosen_refs(outcome, self._ledger) if outcome.shown else [] for outcome in outcomes]
        rows = LedgerPairEncoder(self._encoder, self._ledger, "logistic").features([ref for some in refs for ref in some])
        found: list[Feedback] = []
        for outcome, some in zip(outcomes, refs, strict=True):
            features, rows = rows[: len(some)], rows[len(some) :]
            if some and not np.isnan(features).any():
                found.append(on_chosen_pairs(outcome, features))
            else:
                self.now[1].withdraw(outcome.key)
        return found

    def refit(self, history: Sequence[Feedback]) -> None:
        """Begin again with a new policy; later calls of ``learn`` go through the history."""
        self.now = (self._encoder, self._ranker.policy())
        self._history, self._waiting = deque(history), []

    rebuild = refit

    def rebuild_encoder(self, remaining: Iterable[Candidates]) -> None:
        """Empty the encoder's cache of pairs, which may hold texts of forgotten cases."""
        del remaining
        self._encoder = cast("TrainableEncoder", self._encoder.emptied())
        self.now = (self._encoder, self.now[1])

    def state(self) -> tuple[dict[str, Floats], Callable[[Path], None] | None]:
        """Export the policy's state."""
        return self.now[1].state_dict(), None

    def take(self, state: State, weights: Path | None) -> None:
        """Load a policy's state."""
        del weights
        self.now[1].load_state_dict(state)
        self._history.clear()
        self._waiting.clear()
