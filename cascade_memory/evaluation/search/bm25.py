"""BM25: finds the passages that contain the words of a query; rare words count most."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cascade_memory.evaluation.search.passages import Passage

_WORD = re.compile(r"\b\w\w+\b")
_COMMON = re.compile(  # Lucene's list of words that are not indexed
    "a|an|and|are|as|at|be|but|by|for|if|in|into|is|it|no|not|of|on|or|such|that|the|their|then|there|these|they|this|to|was|"
    "will|with"
)
_SATURATION, _LENGTH = 1.5, 0.75  # the usual k1 and b


class BM25:
    """An index of passages in RAM. Titles are indexed too, and count twice.

    >>> index = BM25([Passage("Jaws", "A film about a shark."), Passage("Ada", "A film about a poet.")])
    >>> [round(float(score), 2) for score in index.scores("the shark film")]
    [0.35, 0.07]
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        # For each word the passages and how often each has it, in turn, as plain numbers: there may be many millions.
        occurrences: defaultdict[str, array[int]] = defaultdict(partial(array, "i"))
        lengths = np.zeros(len(passages))
        for number, passage in enumerate(passages):
            words = words_of(f"{passage.title} {passage.title} {passage.text}")
            lengths[number] = len(words)
            for word, count in Counter(words).items():
                occurrences[word].extend((number, count))
        self._n = len(passages)
        typical = float(lengths.mean()) or 1.0
        damping = _SATURATION * (1 - _LENGTH + _LENGTH * lengths / typical)
        self._weights: dict[str, tuple[NDArray[np.int32], NDArray[np.float32]]] = {}
        for word, found in occurrences.items():
            places, counts = np.array(found, np.int32).reshape(-1, 2).T
            rarity = np.log(1 + (self._n - len(places) + 0.5) / (len(places) + 0.5))
            self._weights[word] = places.copy(), (rarity * counts / (damping[places] + counts)).astype(np.float32)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the score of every passage; it is 0 if the passage has no word of the query."""
        total = np.zeros(self._n, np.float32)
        for word in words_of(query):
            if word in self._weights:
                places, weights = self._weights[word]
                total[places] += weights
        return total


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, without single letters and the most common words.

    >>> words_of("Who is the director of Jaws?")
    ['who', 'director', 'jaws']
    """
    return [word for word in _WORD.findall(text.lower()) if not _COMMON.fullmatch(word)]
