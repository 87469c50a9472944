"""A Gaussian belief about linear weights: theta ~ N(mean, precision^-1)."""

from __future__ import annotations

import numpy as np

from cascade_memory.ports.policy import Floats


class Posterior:
    """Mean and precision of the weights; owns the algebra, knows nothing of exploration.

    Immutable: every change returns a new object, so that a reader never sees half an update.

    >>> posterior = Posterior.prior(np.array([1.0, 0.0]), precision=2.0)
    >>> posterior.uncertainty(np.array([[2.0, 0.0]])).round(3)   # 2 / sqrt(2)
    array([1.414])
    >>> posterior.observe(np.array([2.0, 0.0])).uncertainty(np.array([[2.0, 0.0]])).round(3)   # 2 / sqrt(2 + 4)
    array([0.816])
    """

    __slots__ = ("_covariance", "mean", "precision")

    def __init__(self, mean: Floats, precision: Floats, covariance: Floats | None = None) -> None:
        self.mean = mean
        self.precision = precision  # A, (d, d)
        self._covariance = np.linalg.inv(precision) if covariance is None else covariance  # A^-1

    @classmethod
    def prior(cls, mean: Floats, precision: float) -> Posterior:
        """Return N(mean, I / precision)."""
        mean = np.asarray(mean, np.float64)
        return cls(mean, precision * np.eye(len(mean)), np.eye(len(mean)) / precision)

    def uncertainty(self, features: Floats) -> Floats:
        """Return ``sqrt(x' A^-1 x)`` for each row x."""
        rows = np.asarray(features, np.float64)
        return np.sqrt(np.maximum(np.einsum("nd,de,ne->n", rows, self._covariance, rows), 0.0))

    def observe(self, feature: Floats, weight: float = 1.0) -> Posterior:
        """Add ``weight * x x'`` to the precision; the inverse follows by Sherman-Morrison, O(d^2)."""
        x = np.asarray(feature, np.float64)
        direction = self._covariance @ x
        covariance = self._covariance - np.outer(direction, direction) * (weight / (1.0 + weight * (x @ direction)))
        return Posterior(self.mean, self.precision + weight * np.outer(x, x), covariance)

    def withdraw(self, feature: Floats, weight: float = 1.0) -> Posterior:
        """Undo ``observe``: the pair will get no reward. Inverted afresh, since subtracting loses digits."""
        x = np.asarray(feature, np.float64)
        return Posterior(self.mean, self.precision - weight * np.outer(x, x))

    def moved_to(self, mean: Floats) -> Posterior:
        """Return the same width around another mean."""
        return Posterior(mean, self.precision, self._covariance)
