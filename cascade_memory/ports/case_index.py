"""Nearest neighbours by cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class CaseIndex(Protocol):
    """Finds the nearest of the unit vectors it was given."""

    @property
    def count(self) -> int:
        """Number of vectors held."""
        ...

    def upsert(self, keys: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors, or replace those of known keys. Visible to the very next ``nearest``."""
        ...

    def remove(self, keys: Sequence[int]) -> None:
        """Drop these keys; unknown ones are ignored."""
        ...

    def clear(self) -> None:
        """Drop everything."""
        ...

    def vectors(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of keys that were found a moment ago; zeros where one has gone since."""
        ...

    def nearest(
        self, vector: NDArray[np.float32], k: int, among: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the keys and cosines of the k nearest, best first, restricted to the keys ``among``."""
        ...
