"""A Gaussian belief about linear weights: theta ~ N(mean, precision^-1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cascade_memory.bandit.inverses import Inverse, ShermanMorrison
from cascade_memory.ports.policy import Floats


class Posterior:
    """Mean and precision of the weights, and the algebra on them; exploration is decided elsewhere.

    A posterior is immutable: every change returns a new object, so that another thread never reads a half-finished update.

    >>> posterior = Posterior.prior(np.array([1.0, 0.0]), precision=2.0)
    >>> posterior.uncertainty(np.array([[2.0, 0.0]])).round(3)   # 2 / sqrt(2)
    array([1.414])
    >>> posterior.observe(np.array([2.0, 0.0])).uncertainty(np.array([[2.0, 0.0]])).round(3)   # 2 / sqrt(2 + 4)
    array([0.816])
    """

    __slots__ = ("inverse", "mean", "precision")

    def __init__(self, mean: Floats, precision: Floats, inverse: Inverse | None = None) -> None:
        self.mean = mean
        self.precision = precision  # A, (d, d)
        self.inverse: Inverse = ShermanMorrison(np.linalg.inv(precision)) if inverse is None else inverse

    @classmethod
    def prior(cls, mean: Floats, precision: float, form: Callable[[Floats], Inverse] = ShermanMorrison.of) -> Posterior:
        """Create N(mean, I / precision); ``form`` decides how the inverse is represented."""
        mean = np.asarray(mean, np.float64)
        matrix = precision * np.eye(len(mean))
        return cls(mean, matrix, form(matrix))

    def uncertainty(self, features: Floats) -> Floats:
        """Compute the standard deviation ``sqrt(x' A^-1 x)`` for each row x."""
        return np.sqrt(np.maximum(self.inverse.quadratic(np.asarray(features, np.float64)), 0.0))

    def observe(self, feature: Floats, weight: float = 1.0) -> Posterior:
        """Add ``weight * x x'`` to the precision."""
        x = np.asarray(feature, np.float64)
        precision = self.precision + weight * np.outer(x, x)
        return Posterior(self.mean, precision, self.inverse.grown(x, weight, precision))

    def withdraw(self, feature: Floats, weight: float = 1.0) -> Posterior:
        """Undo ``observe``, since the pair will get no reward. A is inverted from scratch: an update would lose digits."""
        x = np.asarray(feature, np.float64)
        return self.with_precision(self.precision - weight * np.outer(x, x))

    def with_precision(self, precision: Floats) -> Posterior:
        """Return a posterior with the same mean and another precision."""
        return Posterior(self.mean, precision, self.inverse.of(precision))

    def moved_to(self, mean: Floats) -> Posterior:
        """Return a posterior with the same precision and another mean."""
        return Posterior(mean, self.precision, self.inverse)

    def draw(self, seed: int, spread: float = 1.0) -> Floats:
        """Draw weights from the posterior with its standard deviations multiplied by ``spread``."""
        noise = np.random.default_rng(seed).standard_normal(len(self.mean))
        return self.mean + spread * self.inverse.sampled(noise)
