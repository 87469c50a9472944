"""The simplest pair encoders: the only feature is how similar query and case are, or how new the case is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.encoders import Candidates, Query


class CosineEncoder:
    """One feature: the cosine that the recall has computed already. It stores nothing about the cases."""

    identity = "cosine-1"

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosines as a column."""
        del query, candidates
        return np.asarray(similarity, np.float32)[:, None]

    def retain(self, cases: Candidates) -> None:
        """Do nothing: this encoder stores nothing about the cases."""

    def emptied(self) -> CosineEncoder:
        """Return this encoder, which stores nothing."""
        return self


class RecencyEncoder:
    """One feature: the position in the order of age, the newest last, which is all that in-context RL looks at."""

    identity = "recency-1"

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return 0, 1, 2, ... from the oldest to the newest."""
        del query, similarity
        return np.argsort(np.argsort(candidates.keys)).astype(np.float32)[:, None]

    def retain(self, cases: Candidates) -> None:
        """Do nothing: this encoder stores nothing about the cases."""

    def emptied(self) -> RecencyEncoder:
        """Return this encoder, which stores nothing."""
        return self
