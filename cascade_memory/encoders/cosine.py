"""The simplest pair encoder: the similarity of query and case is the only feature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.pair_encoder import Candidates, Query


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
