"""Queries with the same solution form a cluster; measures how far a new query is from each cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.products import inverse_cholesky, product

Vectors = NDArray[np.float32]
Lookup = Callable[[NDArray[np.int64]], Vectors]  # vectors of case keys

_REFRESH_EVERY = 64  # retained cases between two updates of the covariance
_ENOUGH = 50  # deviations from cluster means that a first covariance needs


class SolutionClusters:
    """A linear discriminant between solutions, to which new cases are added as they come.

    Each solution has the mean of its queries. All solutions share one covariance of the queries around these means. Few queries
    estimate it badly, so it is mixed with a multiple of the identity; how much of each is chosen by oracle approximating
    shrinkage (Chen et al. 2010). The score of a candidate is minus half the squared Mahalanobis distance
    from the query to the mean of its solution, multiplied by n / (n + 1), since the mean of few queries is uncertain.

    For a solution with a single case, only two integers are stored: the case's vector is looked up when it is needed.
    """

    def __init__(self, dimension: int, lookup: Lookup) -> None:
        self._lookup = lookup
        self.single: dict[int, int] = {}  # solution -> the key of its only case
        self.several: dict[int, tuple[Vectors, int]] = {}  # solution -> (sum of vectors, number of cases)
        self._dimension = dimension
        self._scatter: NDArray[np.float64] | None = None  # 1.2 MB at 384 dimensions, which a small namespace does not need
        self.deviations: list[Vectors] = []  # those that are not in the covariance yet
        self._count = 0  # of deviations in the covariance
        self._retained = 0
        self._whitening: Vectors | None = None

    @property
    def scatter(self) -> NDArray[np.float64]:
        """The sum of the outer products of the deviations: the covariance, times the number of deviations."""
        return np.zeros((self._dimension, self._dimension)) if self._scatter is None else self._scatter

    def retain(self, keys: NDArray[np.int64], groups: NDArray[np.int64], vectors: Vectors) -> None:
        """Add cases to the clusters of their solutions; update the covariance once at most, however many cases there are."""
        before = self._retained // _REFRESH_EVERY
        of_keys = groups.tolist()
        # What stands alone so far and gets company now is looked up together: one by one takes twice as long.
        alone = {group: self.single[group] for group in of_keys if group in self.single}
        firsts = dict(zip(alone, self._lookup(np.array(list(alone.values()))), strict=True)) if alone else {}
        for key, group, vector in zip(keys.tolist(), of_keys, vectors, strict=True):
            self._add(key, group, vector, firsts)
        if self._retained // _REFRESH_EVERY > before:
            self._whiten()

    def _add(self, key: int, group: int, vector: Vectors, firsts: Mapping[int, Vectors]) -> None:
        self._retained += 1
        known = self.several.get(group)
        if known is None and group in self.single:
            alone = self.single.pop(group)
            first = firsts[group] if group in firsts else self._lookup(np.array([alone]))[0]
            known = (first, 1) if first.any() else None  # else that case was evicted meanwhile
        if known is None:
            self.single[group] = key
        else:
            total, n = known
            self.deviations.append(((vector - total / n) * np.sqrt(n / (n + 1.0))).astype(np.float32))
            self.several[group] = (total + vector, n + 1)
        if self._retained % _REFRESH_EVERY == 0 and self.deviations:
            rows = np.stack(self.deviations)
            self._scatter = self.scatter + product(rows.T, rows)
            self._count += len(rows)
            self.deviations = []

    def _whiten(self) -> None:
        if self._count > _ENOUGH:
            self._whitening = whitening(self.scatter / self._count, self._count)

    def scores(self, vector: Vectors, groups: NDArray[np.int64], vectors: Vectors) -> NDArray[np.float32]:
        """Return the score of each candidate (see the class) from the query's vector and the candidates' groups and vectors."""
        distinct, first, index = np.unique(groups, return_index=True, return_inverse=True)
        means = np.empty((len(distinct), len(vector)), np.float32)
        counts = np.ones(len(distinct), np.float32)
        for i, group in enumerate(distinct.tolist()):
            known = self.several.get(group)
            if known is None:
                means[i] = vectors[first[i]]
            else:
                counts[i] = known[1]
                means[i] = known[0] / np.float32(known[1])
        away = vector - means
        if self._whitening is not None:
            away = product(away, self._whitening)
        distances = np.einsum("gd,gd->g", away, away)
        return (-0.5 * distances * counts / (counts + 1.0))[index].astype(np.float32)


def whitening(covariance: NDArray[np.float64], n: int) -> Vectors:
    """Return W such that ``|xW|^2`` is the squared Mahalanobis distance, on the scale of the squared Euclidean one.

    >>> w = whitening(np.diag([4.0, 1.0]), n=1000)
    >>> bool(abs(w[0, 0]) < abs(w[1, 1]))     # the wide direction counts less
    True
    """
    d = len(covariance)
    total, squares = float(np.trace(covariance)), float((covariance * covariance).sum())
    spread = total / d
    excess = squares - total * total / d
    numerator = (1.0 - 2.0 / d) * squares + total * total
    shrinkage = min(0.9, numerator / max((n + 1.0 - 2.0 / d) * excess, 1e-12))
    shrunk = (1.0 - shrinkage) * covariance + max(shrinkage, 1e-3) * spread * np.eye(d)
    return np.ascontiguousarray(inverse_cholesky(shrunk).T * np.sqrt(spread), np.float32)
