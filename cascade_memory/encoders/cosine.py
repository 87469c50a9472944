"""The least that a pair encoder can say: how similar the two are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.pair_encoder import Candidates, Query


class CosineEncoder:
    """One feature: the cosine that recall has computed already. Keeps nothing of any case."""

    identity = "cosine-1"

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosines as a column."""
        del query, candidates
        return np.asarray(similarity, np.float32)[:, None]

    def retain(self, cases: Candidates) -> None:
        """Keep nothing."""

    def emptied(self) -> CosineEncoder:
        """Return this one."""
        return self
