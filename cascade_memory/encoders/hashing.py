"""An embedder without a model: deterministic, with numpy only, and texts with similar wording are neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders.lexical import MAX_TEXTS, letter_terms, word_terms


class HashingEmbedder:
    """Random projections of the words and letter sequences of a text: similar wording gives similar vectors.

    It is meant for tests, for demonstrations, and for machines without torch. It ignores meaning: synonyms are not similar.

    >>> embed = HashingEmbedder(dimension=256).embed
    >>> near, far, query = embed(["heat the cup", "price of gold", "heat a cup please"])
    >>> bool(near @ query > far @ query)
    True
    """

    def __init__(self, dimension: int = 384) -> None:
        self.dimension = dimension
        self.identity = f"hashing-1:{dimension}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors."""
        parts = [self._embed(texts[start : start + MAX_TEXTS]) for start in range(0, len(texts), MAX_TEXTS)]
        return np.concatenate(parts) if parts else np.zeros((0, self.dimension), np.float32)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for salt, weight, (owners, buckets) in ((1, 1.0, word_terms(texts)), (2, 0.3, letter_terms(texts))):
            # Each term adds +1 or -1 to four coordinates; a hash of its bucket chooses coordinates and signs.
            mixed = buckets.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt * 0x632BE59BD9B4E019)
            for turn in range(4):
                mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
                place = (mixed >> np.uint64(32)) % np.uint64(self.dimension)
                sign = np.where(mixed & np.uint64(1 << (8 + turn)), weight, -weight)
                np.add.at(vectors, (owners, place.astype(np.int64)), sign.astype(np.float32))
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[:, 0] += (norms[:, 0] == 0).astype(np.float32)  # a text without words needs a direction as well
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
