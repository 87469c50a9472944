"""Measures on the stored cases, before any reward, whether tasks of the same form have solutions of the same form."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.lexical import Rarity, word_terms
from cascade_memory.ports.pair_encoder import Candidates

_EARLIER = 16  # a new case is compared with this many earlier ones
_CLOSELY, _SELDOM = 256, 256  # cases that are all compared; after them one in so many, since the answer rarely changes
_SURE = 2.0  # standard errors that are subtracted
_RIDGE = 1e-3  # keeps the equations solvable where all texts are alike
_TOPIC, _FORM, _WORDS, _SOLUTION = range(4)


@dataclass(frozen=True, slots=True)
class _Earlier:
    text: str
    solution: str
    group: int
    vector: NDArray[np.float32]


class Form:
    """How much the form of a task says about the form of its solution, beyond what its topic says.

    The form of a text are the words in it that are common among all stored texts: "ordered by", "skipping the first two". The
    topic are the other words. Each new case is compared with up to sixteen earlier ones that have another solution (after 256
    cases, only every 256th is). The likeness of their solutions' forms is regressed on the cosine of the tasks, the likeness of
    their forms, and their rare words. The weight is the coefficient of the form, minus two standard errors, divided by the
    largest coefficient: near 1 where the form decides, and 0 where the topic does. A solution that recurs counts once, so
    labels say next to nothing.

    >>> Form().weight
    0.0
    """

    def __init__(self) -> None:
        self.solutions = Rarity(word_terms)
        self._earlier: deque[_Earlier] = deque(maxlen=_EARLIER)
        self._cases = self._compared = 0
        self._solutions: set[int] = set()  # that were compared
        self._pairs = 0.0
        self._sums, self._products = np.zeros(4), np.zeros((4, 4))
        self.weight = 0.0

    def retain(self, cases: Candidates, words: Rarity) -> None:
        """Compare new cases with earlier ones, and compute the weight again; ``words`` has counted the words of all tasks."""
        self.solutions.add(cases.heads)
        compared = self._compared
        for place in range(len(cases)):
            self._cases += 1
            if self._cases > _CLOSELY and self._cases % _SELDOM:
                continue
            case = _Earlier(cases.texts[place], cases.heads[place], int(cases.groups[place]), cases.vectors[place])
            others = [other for other in self._earlier if other.group != case.group]
            if others:
                self._compare(case, others, words)
            self._earlier.append(case)
        if self._compared > compared:
            self.weight = self._weight()

    def _compare(self, case: _Earlier, others: list[_Earlier], words: Rarity) -> None:
        rare, form = words.rare_and_common(case.text, [other.text for other in others])
        topic = np.array([other.vector @ case.vector for other in others])
        _, solution = self.solutions.rare_and_common(case.solution, [other.solution for other in others])
        likeness = np.stack([topic, form, rare, solution]).astype(np.float64)
        self._compared += 1
        self._solutions.add(case.group)
        self._pairs += len(others)
        self._sums += likeness.sum(axis=1)
        self._products += likeness @ likeness.T

    def _weight(self) -> float:
        mean = self._sums / self._pairs
        covariance = self._products / self._pairs - np.outer(mean, mean)
        deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-9))
        correlation = covariance / np.outer(deviation, deviation)
        says = np.linalg.solve(
            correlation[:_SOLUTION, :_SOLUTION] + _RIDGE * np.eye(_SOLUTION), correlation[:_SOLUTION, _SOLUTION]
        )
        # Pairs share their cases, and cases share their solutions, so only different solutions count as independent.
        surely = min(says[_FORM], 1.0) - _SURE / np.sqrt(len(self._solutions))
        return float(np.clip(surely / max(says.max(), 1e-9), 0.0, 1.0))
