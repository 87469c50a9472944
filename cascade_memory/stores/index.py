"""The index of a namespace: an exact scan for few cases; for many, an approximate index, and a scan of the newest ones."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.redaction.saying import log_of
from cascade_memory.stores.vector_rows import VectorRows

EXACT_LIMIT = 20_000  # with fewer cases the exact scan is as fast (measured: about 1.3 ms at 384 dimensions)
_LEAST = 8  # keys that there is room for at first
_log = log_of(__name__)


@dataclass(frozen=True, slots=True)
class _Table:
    """The state of an index that a reader sees: the first ``n`` rows of the arrays. Writers change only the rows after them."""

    keys: NDArray[np.int64]  # ascending
    vectors: VectorRows
    alive: NDArray[np.bool_]
    n: int
    dead: int


class ExactIndex:
    """Holds all vectors, and scans them exactly. Readers take no lock: each reads a table that was complete at one moment.

    >>> index = ExactIndex(2)
    >>> index.upsert(np.array([1, 2]), np.array([[1.0, 0.0], [0.0, 1.0]], np.float32))
    >>> keys, cosines = index.nearest(np.array([0.8, 0.6], np.float32), k=1)
    >>> int(keys[0]), round(float(cosines[0]), 2)
    (1, 0.8)
    """

    def __init__(self, dimension: int) -> None:
        self._lock = threading.Lock()
        self._dimension = dimension
        self._table = self._nothing()

    def _nothing(self) -> _Table:
        return _Table(np.zeros(0, np.int64), VectorRows(self._dimension), np.zeros(0, bool), n=0, dead=0)

    def clear(self) -> None:
        """Remove all vectors."""
        with self._lock:
            self._table = self._nothing()

    @property
    def count(self) -> int:
        """The number of vectors."""
        return self._table.n - self._table.dead

    @property
    def bytes(self) -> int:
        """How much memory the vectors take."""
        return self._table.vectors.bytes

    def upsert(self, keys: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors, or replace those of known keys."""
        with self._lock:
            order = np.argsort(keys, kind="stable")
            keys, vectors = np.asarray(keys)[order], np.asarray(vectors, np.float32)[order]
            table = self._table
            if table.n and len(keys) and keys[0] <= table.keys[table.n - 1]:
                table = self._without(table, keys)
                merged = np.concatenate([table.keys[: table.n], keys])
                order = np.argsort(merged, kind="stable")
                self._table = _Table(
                    merged[order],
                    table.vectors.rearranged(table.n, vectors, order),
                    np.concatenate([table.alive[: table.n], np.ones(len(keys), bool)])[order],
                    n=len(merged),
                    dead=table.dead,
                )
                return
            self._table = self._appended(table, keys, vectors)

    def _without(self, table: _Table, keys: NDArray[np.int64]) -> _Table:
        keep = np.flatnonzero(~np.isin(table.keys[: table.n], keys))
        alive = table.alive[keep]
        nothing = np.zeros((0, self._dimension), np.float32)
        return _Table(
            table.keys[keep],
            table.vectors.rearranged(table.n, nothing, keep),
            alive,
            n=len(alive),
            dead=int(len(alive) - alive.sum()),
        )

    @staticmethod
    def _appended(table: _Table, keys: NDArray[np.int64], vectors: NDArray[np.float32]) -> _Table:
        n, all_keys, alive = table.n + len(keys), table.keys, table.alive
        if n > len(all_keys):  # grow by half; the old arrays stay unchanged for their readers
            room = max(n, _LEAST, len(all_keys) * 3 // 2)
            all_keys, alive = np.zeros(room, np.int64), np.zeros(room, bool)
            all_keys[: table.n], alive[: table.n] = table.keys[: table.n], table.alive[: table.n]
        all_keys[table.n : n] = keys
        alive[table.n : n] = True
        return _Table(all_keys, table.vectors.with_rows(table.n, vectors), alive, n=n, dead=table.dead)

    def remove(self, keys: Sequence[int]) -> None:
        """Remove these keys; unknown keys are ignored."""
        with self._lock:
            table = self._table
            alive = table.alive.copy()
            gone = np.flatnonzero(np.isin(table.keys[: table.n], np.asarray(keys, np.int64)))
            alive[gone] = False
            table.vectors.wipe(gone)
            dead = int(table.n - alive[: table.n].sum())
            table = _Table(table.keys, table.vectors, alive, n=table.n, dead=dead)
            if dead * 4 > table.n:
                table = self._without(table, table.keys[: table.n][~alive[: table.n]])
            self._table = table

    def nearest(
        self, vector: NDArray[np.float32], k: int, among: NDArray[np.int64] | None = None, after: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the keys and cosines of the k nearest vectors, best first, for keys in ``among`` and beyond ``after`` only."""
        table = self._table
        start = int(np.searchsorted(table.keys[: table.n], after, side="right")) if after else 0
        if among is None:
            rows = None
            cosines = table.vectors.times(start, table.n, vector)
            if table.dead:
                cosines = np.where(table.alive[start : table.n], cosines, -np.inf)
        else:
            rows = _positions(table, among)
            cosines = table.vectors.times_at(rows, vector)
        found = _top(cosines, k)
        found = found[np.isfinite(cosines[found])]
        places = found + start if rows is None else rows[found]
        return table.keys[places], cosines[found].astype(np.float32)

    def vectors(self, keys: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of keys that a search has just found; zeros for a key that was removed since."""
        table = self._table
        places = np.searchsorted(table.keys[: table.n], keys)
        known = places < table.n
        known[known] = table.keys[places[known]] == keys[known]
        vectors = np.zeros((len(keys), self._dimension), np.float32)
        vectors[known] = table.vectors.at(places[known])
        return vectors


class Bulk(Protocol):
    """An approximate index that holds every case up to a certain key."""

    @property
    def covered(self) -> int:
        """The greatest key in the index, which holds all smaller keys as well; 0 while it cannot answer queries."""
        ...

    def nearest(self, vector: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Return the keys of the (approximately) k nearest cases."""
        ...


class TieredIndex(ExactIndex):
    """A ``CaseIndex`` that queries the approximate index if that is faster. New cases are found at once with or without it."""

    def __init__(self, dimension: int, bulk: Bulk | None = None, exact_limit: int = EXACT_LIMIT) -> None:
        super().__init__(dimension)
        self._bulk = bulk
        self.exact_limit = exact_limit  # with up to this many cases the approximate index is not queried

    def nearest(
        self, vector: NDArray[np.float32], k: int, among: NDArray[np.int64] | None = None, after: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the keys and cosines of the k nearest vectors, best first, for keys in ``among`` and beyond ``after`` only."""
        exact = super().nearest
        if self._bulk is None or among is not None or after or self.count <= self.exact_limit:
            return exact(vector, k, among, after)
        covered = self._bulk.covered
        if not covered:
            return exact(vector, k)
        try:
            bulk = self._bulk.nearest(vector, k + 8)  # a few more, since some may have been forgotten meanwhile
        except Exception as error:  # noqa: BLE001 - if the index fails in any way, the exact scan answers
            _log.info("the Chroma index failed (%s); scanning exactly instead", error)
            return exact(vector, k)
        if len(bulk) < k:  # it is being rebuilt, perhaps by another process
            return exact(vector, k)
        tail, _ = exact(vector, k, after=covered)
        keys, cosines = exact(vector, k, among=np.union1d(bulk, tail))
        if len(keys) < min(k, self.count):  # it returned cases that are not here: forgotten ones, or those of another namespace
            return exact(vector, k)
        return keys, cosines


def _positions(table: _Table, keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of these keys (ascending), without those that are not in the table."""
    places = np.searchsorted(table.keys[: table.n], keys)
    inside = places < table.n
    places, keys = places[inside], keys[inside]
    return places[(table.keys[places] == keys) & table.alive[places]]


def _top(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return the positions of the k highest values, highest first; equal values in order of age."""
    best = np.argpartition(-scores, k - 1)[:k] if len(scores) > k else np.arange(len(scores))
    return best[np.lexsort((best, -scores[best]))]
