"""Measures on the stored cases, before any reward, how far cases with similar paragraphs have similar solutions."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.lexical import Rarity
from cascade_memory.ports.pair_encoder import Candidates

TEXT_CHARS = 1_000  # characters of each text that are compared
_BETWEEN = re.compile(r"\r?\n[ \t]*\r?\n\s*")
_EARLIER = 16  # a new case is compared with this many earlier ones
_CLOSELY = 1_024  # cases; after them only one case in _EARLIER is compared, since the answer rarely changes


def has_ends(text: str) -> bool:
    r"""Say whether a text has several paragraphs.

    >>> has_ends("Put the cup away."), has_ends("A kitchen.\n\nPut the cup away.")
    (False, True)
    """
    return _BETWEEN.search(text.strip()) is not None


def ends_of(text: str) -> tuple[str, str]:
    r"""Return the first and the last paragraph; the last one is empty if the text has ``TEXT_CHARS`` characters or more.

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
    """How much the first and the last paragraph say about the solution, compared with the embedding of the whole text.

    Each new case with several paragraphs is compared with up to sixteen earlier ones (after 1,024 such cases, only every
    sixteenth one is). A paragraph's weight is the correlation between the similarity of the paragraphs and the similarity of
    the solutions, minus one standard error, divided by the highest of the three correlations: of the first paragraphs, of the
    last paragraphs, and of the whole texts. The weight is near 1 for a paragraph that says as much as the whole text, and 0 for
    a greeting.
    """

    def __init__(self) -> None:
        self._earlier: deque[_Earlier] = deque(maxlen=_EARLIER)
        self._cases = 0
        self.pairs = 0.0  # pairs of cases that were compared
        self._sums = np.zeros(4)  # of the similarity of whole texts, first paragraphs, last paragraphs, solutions
        self._products = np.zeros((4, 4))
        self.weights: NDArray[np.float32] = np.zeros(
            2, np.float32
        )  # replaced as a whole, since other threads read it meanwhile

    def retain(self, cases: Candidates, letters: Rarity) -> None:
        """Compare new cases that have several paragraphs with earlier ones, and compute the weights of the paragraphs again.

        ``letters`` measures how similar two texts are, by the letter sequences that they share.
        """
        counted = self._cases
        for place, text in enumerate(cases.texts):
            if not has_ends(text):
                continue
            self._cases += 1
            if self._cases > _CLOSELY and self._cases % _EARLIER:
                continue
            case = _Earlier(*ends_of(text), cases.heads[place], int(cases.groups[place]), cases.vectors[place])
            if self._earlier:
                self._compare(case, letters)
            self._earlier.append(case)
        if self._cases > counted:
            self.weights = self._weights()

    def _compare(self, case: _Earlier, letters: Rarity) -> None:
        others = list(self._earlier)
        same = np.array([other.group == case.group for other in others])
        likeness = np.stack(
            [
                np.array([other.vector @ case.vector for other in others]),
                letters.shared(case.opening, [other.opening for other in others]),
                letters.shared(case.closing, [other.closing for other in others]),
                np.where(same, 1.0, letters.shared(case.solution, [other.solution for other in others])),
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
        surely = says - 1.0 / np.sqrt(self._cases)  # pairs share cases, so only the cases count as independent
        return np.clip(surely[1:] / max(says.max(), 1e-9), 0.0, 1.0).astype(np.float32)
