"""Adapts a trainable encoder for ``NeuralBandit``, which names pairs by (recall, case): reads the texts from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cascade_memory.bandit.neural_bandit import Lesson, Ref
from cascade_memory.ports.pair_encoder import Pair, TrainableEncoder
from cascade_memory.ports.policy import Feedback, Floats

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger


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
