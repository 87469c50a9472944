"""Do cases that are alike in one paragraph have alike solutions? Found out from the stored cases alone, before any reward."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.lexical import Rarity, shared_letters
from cascade_memory.ports.pair_encoder import Candidates

TEXT_CHARS = 1_000  # of each text that are compared
_BETWEEN = re.compile(r"\r?\n[ \t]*\r?\n\s*")
_EARLIER = 16  # cases that a new one is compared with
_CLOSELY = 1_024  # cases after which one in _EARLIER is compared: what paragraphs say rarely changes


def has_ends(text: str) -> bool:
    r"""Say whether a text has several paragraphs.

    >>> has_ends("Put the cup away."), has_ends("A kitchen.\n\nPut the cup away.")
    (False, True)
    """
    return _BETWEEN.search(text.strip()) is not None


def ends_of(text: str) -> tuple[str, str]:
    r"""Return the first and the last paragraph; nothing for a last one that lies beyond what is compared.

    >>> ends_of("A kitchen.\n\nA fridge.\n\nPut the cup away.")
    ('A kitchen.', 'Put the cup away.')
    """
    paragraphs = _BETWEEN.split(text.strip())
    whole = len(text) < TEXT_CHARS
    return paragraphs[0][:TEXT_CHARS], paragraphs[-1] if whole else ""


@dataclass(frozen=True, slots=True)
class _Earlier:
    opening: str
    closing: str
    solution: str
    group: int
    vector: NDArray[np.float32]


class Alignment:
    """How much the first and the last paragraph say of the solution, beside what the embedding of the whole text says.

    Each new case is compared with the sixteen before it. The correlation of a paragraph's likeness with the likeness of the
    solutions, less one standard error, over the best one: 1 where it says as much as the whole text, 0 for greetings.
    """

    def __init__(self) -> None:
        self._earlier: deque[_Earlier] = deque(maxlen=_EARLIER)
        self._cases = 0
        self.pairs = 0.0  # of cases that were compared
        self._sums = np.zeros(4)  # of the likeness of whole texts, openings, closings, solutions
        self._products = np.zeros((4, 4))
        self.weights: NDArray[np.float32] = np.zeros(2, np.float32)  # replaced as a whole: others read it meanwhile

    def retain(self, cases: Candidates, rarity: Rarity) -> None:
        """Compare those of the new cases that have several paragraphs with the ones before them."""
        counted = self._cases
        for place, text in enumerate(cases.texts):
            if not has_ends(text):
                continue
            self._cases += 1
            if self._cases > _CLOSELY and self._cases % _EARLIER:
                continue
            case = _Earlier(*ends_of(text), cases.heads[place], int(cases.groups[place]), cases.vectors[place])
            if self._earlier:
                self._compare(case, rarity)
            self._earlier.append(case)
        if self._cases > counted:
            self.weights = self._weights()

    def _compare(self, case: _Earlier, rarity: Rarity) -> None:
        others = list(self._earlier)
        same = np.array([other.group == case.group for other in others])
        likeness = np.stack(
            [
                np.array([other.vector @ case.vector for other in others]),
                shared_letters(case.opening, [other.opening for other in others], rarity),
                shared_letters(case.closing, [other.closing for other in others], rarity),
                np.where(same, 1.0, shared_letters(case.solution, [other.solution for other in others], rarity)),
            ]
        )
        self.pairs += len(others)
        self._sums += likeness.sum(axis=1)
        self._products += likeness @ likeness.T

    def _weights(self) -> NDArray[np.float32]:
        if not self.pairs:
            return np.zeros(2, np.float32)
        mean = self._sums / self.pairs
        covariance = self._products / self.pairs - np.outer(mean, mean)
        deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-9))
        says = covariance[:3, 3] / (deviation[:3] * deviation[3])
        surely = says - 1.0 / np.sqrt(self._cases)  # pairs share cases: only these are independent
        return np.clip(surely[1:] / max(says.max(), 1e-9), 0.0, 1.0).astype(np.float32)
