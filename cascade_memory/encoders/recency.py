"""How new a case is among the candidates: all that in-context reinforcement learning looks at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.pair_encoder import Candidates, Query


class RecencyEncoder:
    """One feature: the place in the order of age, the newest last. Keeps nothing of any case."""

    identity = "recency-1"

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return 0, 1, 2, ... from the oldest to the newest."""
        del query, similarity
        return np.argsort(np.argsort(candidates.keys)).astype(np.float32)[:, None]

    def retain(self, cases: Candidates) -> None:
        """Keep nothing."""

    def emptied(self) -> RecencyEncoder:
        """Return this one."""
        return self
