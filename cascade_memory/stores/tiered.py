"""Exact while small; a big index for the bulk and an exact scan for its tail when large."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.stores.exact import ExactIndex

EXACT_LIMIT = 20_000  # below, the exact scan is as fast and needs no index (measured: about 1.3 ms at 384 dimensions)
_log = logging.getLogger(__name__)


class Bulk(Protocol):
    """An approximate index that holds every case up to some key."""

    @property
    def covered(self) -> int:
        """The greatest key it holds; it holds all smaller ones as well. 0 when it cannot be asked."""
        ...

    def nearest(self, vector: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Return the keys of about the k nearest."""
        ...


class TieredIndex:
    """A ``CaseIndex`` that asks the bulk index when that pays, and sees a new case at once either way."""

    def __init__(self, dimension: int, bulk: Bulk | None = None, exact_limit: int = EXACT_LIMIT) -> None:
        self._exact = ExactIndex(dimension)
        self._bulk = bulk
        self.exact_limit = exact_limit  # up to so many cases nobody asks the bulk index

    @property
    def count(self) -> int:
        """Number of vectors held."""
        return self._exact.count

    def upsert(self, keys: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors."""
        self._exact.upsert(keys, vectors)

    def remove(self, keys: Sequence[int]) -> None:
        """Drop keys."""
        self._exact.remove(keys)

    def clear(self) -> None:
        """Drop everything."""
        self._exact.clear()

    def vectors(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of known keys."""
        return self._exact.vectors(keys)

    def nearest(
        self, vector: NDArray[np.float32], k: int, among: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the k nearest, best first, restricted to the keys ``among``."""
        covered = self._bulk.covered if self._bulk is not None and among is None else 0
        if self._bulk is None or not covered or self._exact.count <= self.exact_limit:
            return self._exact.nearest(vector, k, among)
        try:
            bulk = self._bulk.nearest(vector, k + 8)  # a few more: some may have been forgotten since
        except Exception as error:  # noqa: BLE001 - whatever the index does, the exact scan answers
            _log.info("the Chroma index failed (%s); scanning exactly instead", error)
            return self._exact.nearest(vector, k, among)
        if len(bulk) < k:  # it is being fed anew, by another process perhaps
            return self._exact.nearest(vector, k, among)
        tail, _ = self._exact.nearest(vector, k, after=covered)
        keys, cosines = self._exact.nearest(vector, k, among=np.union1d(bulk, tail))
        if len(keys) < min(k, self._exact.count):  # it named cases that are not here: forgotten, or of another namespace
            return self._exact.nearest(vector, k)
        return keys, cosines
