"""The light pair encoder: seven numbers a pair, in about a millisecond a recall, without a second model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.alignment import TEXT_CHARS, Alignment, ends_of, has_ends
from cascade_memory.encoders.clusters import Lookup, SolutionClusters
from cascade_memory.encoders.lexical import Rarity, Terms, letter_terms, shared_letters, word_terms
from cascade_memory.ports.pair_encoder import Candidates, Query

ENDS = ("opening", "closing")
# A new signal goes to the end: in the rows of earlier versions, which lack it, it is taken for 0.
FEATURES = ("similarity", "cluster", "words", "letters", "solution words", *ENDS)
_BATCH = 4_096


class LightEncoder:
    """Describes a candidate by how it stands among the candidates of its recall.

    Cosine; distance to the cluster of its solution; shared words; shared letter runs; words that the query shares with the
    stored *solution*; where the query has several paragraphs, shared letter runs of the first ones and of the last ones. Each
    is standardised over the candidates, so that no scale has to be learned. Opening and closing count as much as stored cases
    with alike paragraphs have alike solutions.
    """

    identity = "light-3"
    features = FEATURES

    def __init__(self, dimension: int, lookup: Lookup) -> None:
        self._dimension, self._lookup = dimension, lookup
        self.clusters = SolutionClusters(dimension, lookup)
        self.words, self.letters, self.alignment = Rarity(), Rarity(), Alignment()

    def emptied(self) -> LightEncoder:
        """Return an encoder that knows no case."""
        return type(self)(self._dimension, self._lookup)

    def retain(self, cases: Candidates) -> None:
        """Count the words of new cases and add them to the clusters of their solutions."""
        for start in range(0, len(cases), _BATCH):
            texts = [text[:TEXT_CHARS] for text in cases.texts[start : start + _BATCH]]
            self.words.add(word_terms(texts), len(texts))
            self.letters.add(letter_terms(texts), len(texts))
        self.clusters.retain(cases.keys, cases.groups, cases.vectors)
        self.alignment.retain(cases, self.letters)

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (n, 7) features, the standardised cosine first."""
        signals = self.signals(query, candidates, similarity)
        if signals.keys() != set(self.features):
            raise ValueError(f"{type(self).__name__} names {', '.join(self.features)}, and computes {', '.join(signals)}")
        features = standardised(np.stack([signals[name] for name in self.features], axis=1))
        for name, weight in zip(ENDS, self.alignment.weights, strict=True):
            features[:, self.features.index(name)] *= weight
        return features

    def signals(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Return each signal of each candidate, on whatever scale it has."""
        n = len(candidates)
        texts = [query.text[:TEXT_CHARS], *(text[:TEXT_CHARS] for text in candidates.texts)]
        asked, words, heads = _parts(word_terms([*texts, *candidates.heads]), n)
        opening, closing = self._of_ends(query.text, candidates.texts)
        return {
            "similarity": similarity,
            "cluster": self.clusters.scores(query.vector, candidates.groups, candidates.vectors),
            "words": self.words.overlap(words, n, asked),
            "letters": shared_letters(texts[0], texts[1:], self.letters),
            "solution words": self.words.overlap(heads, n, asked),
            "opening": opening,
            "closing": closing,
        }

    def _of_ends(self, asked: str, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Compare first and last paragraphs: what is to be done stands there, and how things stand fills the rest."""
        if not self.alignment.weights.any() or not has_ends(asked):
            return [np.zeros(len(texts), np.float32)] * len(ENDS)
        others = zip(*(ends_of(text) for text in texts), strict=True)
        return [shared_letters(end, there, self.letters) for end, there in zip(ends_of(asked), others, strict=True)]


def _parts(terms: Terms, n: int) -> tuple[NDArray[np.int32], Terms, Terms]:
    """Part the terms of the query from those of n candidates and those of n solutions."""
    owners, buckets = terms
    first, second = np.searchsorted(owners, [1, n + 1])
    candidates = (owners[first:second] - 1, buckets[first:second])
    return buckets[:first], candidates, (owners[second:] - (n + 1), buckets[second:])


def standardised(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Bring each column to mean 0 and deviation 1; a constant column says nothing and becomes 0.

    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]], np.float32))
    array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
    """
    centred = columns - columns.mean(axis=0)
    deviation = centred.std(axis=0)
    # Below float32's own noise there is no order to be found.
    flat = deviation < 1e-6 * np.maximum(np.abs(columns).max(axis=0), 1e-6)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, deviation)).astype(np.float32)
