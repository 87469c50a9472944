"""Which pairs are encoded again after a training step: no more than asked for, and in the end all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cascade_memory.bandit.neural_bandit import Lesson, NeuralBandit, Ref, Schedule
from cascade_memory.bandit.neural_linlogucb import WINDOW, NeuralLinLogUCB
from cascade_memory.ports.policy import Feedback, Floats, Slate

EVERY, REENCODE = 32, 128


class CountingEncoder:
    """Encodes a pair by its numbers, and notes which pairs it was asked for at once."""

    def __init__(self) -> None:
        self.asked: list[set[Ref]] = []

    def features(self, refs: Sequence[Ref]) -> Floats:
        self.asked.append({*refs})
        return np.array([[1.0, (recall % 7) / 7.0] for recall, _ in refs])

    def trained(self, lessons: Sequence[Lesson], theta: Floats, *, joint: bool) -> tuple[CountingEncoder, Floats]:
        return self, theta


def test_each_step_encodes_so_many_pairs_and_comes_to_all_of_the_window():
    encoder = CountingEncoder()
    bandit = NeuralBandit(encoder, NeuralLinLogUCB(np.zeros(2)), Schedule(every=EVERY, reencode=REENCODE))
    slate = Slate(features=np.ones((1, 2)), similarity=np.ones(1), groups=np.zeros(1, np.int64))
    # Each step encodes the newest, and the window grows by as many: after so many steps every pair has had its turn.
    rounds = WINDOW // (REENCODE - 2 * EVERY) + 2
    outcomes, again = WINDOW + rounds * EVERY, set[Ref]()
    for number in range(outcomes):
        outcome = Feedback(
            key=number,
            slate=slate,
            chosen=np.zeros(1, np.int64),
            context=np.zeros(1),
            shown=True,
            reward=float(number % 3 > 0),
            agreement=None,
        )
        if bandit.learn(outcome, [(number, 0)]):
            assert len(encoder.asked[-1]) <= REENCODE
            again |= encoder.asked[-1] if number >= WINDOW else set()
    assert bandit.steps == outcomes // EVERY
    assert again >= {(number, 0) for number in range(outcomes - WINDOW, outcomes)}
