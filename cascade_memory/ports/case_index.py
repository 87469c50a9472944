"""The protocol of an index that finds nearest neighbours by cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class CaseIndex(Protocol):
    """Finds the nearest neighbours, by cosine, among the unit vectors that it holds."""

    @property
    def count(self) -> int:
        """The number of vectors in the index."""
        ...

    @property
    def bytes(self) -> int:
        """How much memory the vectors take, roughly."""
        ...

    def upsert(self, keys: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors, or replace those of known keys. The very next ``nearest`` must see them."""
        ...

    def remove(self, keys: Sequence[int]) -> None:
        """Remove these keys; unknown keys are ignored."""
        ...

    def clear(self) -> None:
        """Drop everything."""
        ...

    def vectors(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of keys that ``nearest`` has just found; zeros for a key that was removed since."""
        ...

    def nearest(
        self, vector: NDArray[np.float32], k: int, among: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the keys and cosines of the k nearest vectors, best first; with ``among``, of these keys only."""
        ...
