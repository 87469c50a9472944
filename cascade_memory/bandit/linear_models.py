"""Linear models: logistic regression, and a Gaussian belief about the weights, theta ~ N(mean, A^-1).

Everything that predicts success shares them. There are two ways to keep A^-1 up to date while A grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from cascade_memory.ports.policy import Floats

_CLOSE = 1e-7  # after a Newton step of this size, the error is about its square: another step would change nothing
_BLOCK = 64


def sigmoid(x: Floats) -> Floats:
    """Compute ``1 / (1 + e^-x)`` without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def softmax(x: Floats) -> Floats:
    """Compute ``e^x``, scaled so that the last axis sums to one."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def fit_logistic(
    inputs: Floats,
    labels: Floats,
    importance: Floats,
    *,
    start: Floats,
    prior: Floats,
    precision: Floats | float,
    steps: int = 3,
) -> Floats:
    """Fit a logistic regression with the prior N(prior, 1 / precision) on its weights, by Newton's method from ``start``.

    The result is the maximum of the posterior. Labels may lie between 0 and 1; ``importance`` says how much each row counts.

    >>> ones = np.ones((30, 1))
    >>> weights = fit_logistic(ones, ones[:, 0], ones[:, 0], start=np.zeros(1), prior=np.zeros(1), precision=1.0, steps=20)
    >>> bool(sigmoid(weights)[0] > 0.9)
    True
    """
    weights, stiffness = start, np.diag(np.broadcast_to(precision, prior.shape))
    for _ in range(steps):
        predicted = sigmoid(inputs @ weights)
        gradient = inputs.T @ (importance * (predicted - labels)) + precision * (weights - prior)
        curvature = (inputs * (importance * predicted * (1 - predicted))[:, None]).T @ inputs
        step = np.linalg.solve(curvature + stiffness, gradient)
        # Far from the mode the quadratic model is poor: never move a weight by more than 2 at once.
        weights = weights - step * min(1.0, 2.0 / (np.abs(step).max() + 1e-12))
        if np.abs(step).max() < _CLOSE:
            break
    return weights


class Inverse(Protocol):
    """The inverse of a symmetric positive definite matrix A in some representation; immutable."""

    def quadratic(self, rows: Floats) -> Floats:
        """Compute ``x' A^-1 x`` for each row x."""
        ...

    def grown(self, x: Floats, weight: float, precision: Floats) -> Inverse:
        """Return the representation for ``precision``, which is the old matrix plus ``weight * x x'``."""
        ...

    @staticmethod
    def of(precision: Floats) -> Inverse:
        """Compute this representation of a matrix from scratch."""
        ...

    def sampled(self, noise: Floats) -> Floats:
        """Turn standard normal noise into a draw from N(0, A^-1)."""
        ...


class ShermanMorrison:
    """A^-1 itself, with rank-one updates: O(d^2) each. Rounding errors add up, so now and then A is inverted again.

    >>> ShermanMorrison(np.eye(2) / 2.0).quadratic(np.array([[2.0, 0.0]]))
    array([2.])
    """

    __slots__ = ("_covariance", "_updates")

    REFACTOR_EVERY = 512

    def __init__(self, covariance: Floats, updates: int = 0) -> None:
        self._covariance, self._updates = covariance, updates

    def quadratic(self, rows: Floats) -> Floats:
        """Compute ``x' A^-1 x`` for each row x."""
        return np.einsum("nd,nd->n", rows @ self._covariance, rows)

    def grown(self, x: Floats, weight: float, precision: Floats) -> ShermanMorrison:
        """Update A^-1 by the Sherman-Morrison formula; every 512th time, invert ``precision`` instead."""
        if self._updates + 1 >= self.REFACTOR_EVERY:
            return self.of(precision)
        direction = self._covariance @ x
        shrunk = np.outer(direction, direction) * (weight / (1.0 + weight * (x @ direction)))
        return ShermanMorrison(self._covariance - shrunk, self._updates + 1)

    @staticmethod
    def of(precision: Floats) -> ShermanMorrison:
        """Invert the matrix."""
        return ShermanMorrison(np.linalg.inv(precision))

    def sampled(self, noise: Floats) -> Floats:
        """Multiply the noise by the Cholesky factor of A^-1."""
        return np.linalg.cholesky(self._covariance) @ noise


class Cholesky:
    """The triangular factor of A, computed when it is first needed: O(d^3 / 3), and rounding errors do not add up.

    >>> Cholesky(2.0 * np.eye(2)).quadratic(np.array([[2.0, 0.0]]))
    array([2.])
    """

    __slots__ = ("_factor", "_precision")

    def __init__(self, precision: Floats) -> None:
        self._precision = precision
        self._factor: Floats | None = None  # needs no lock: two threads would compute the same factor

    def quadratic(self, rows: Floats) -> Floats:
        """Compute ``|L^-1 x|^2`` for each row x, where ``A = L L'``."""
        return (solve_lower(self._lower(), np.ascontiguousarray(rows.T)) ** 2).sum(axis=0)

    def grown(self, x: Floats, weight: float, precision: Floats) -> Cholesky:
        """Keep the new matrix; its factor is computed when it is first needed."""
        del x, weight
        return Cholesky(precision)

    @staticmethod
    def of(precision: Floats) -> Cholesky:
        """Keep the matrix; its factor is computed when it is first needed."""
        return Cholesky(precision)

    def sampled(self, noise: Floats) -> Floats:
        """Solve ``L' x = noise``: the covariance of x is A^-1."""
        return np.linalg.solve(self._lower().T, noise)

    def _lower(self) -> Floats:
        if self._factor is None:
            self._factor = np.linalg.cholesky(self._precision)
        return self._factor


def solve_lower(lower: Floats, right: Floats) -> Floats:
    """Solve ``L x = b`` for each column b by forward substitution, a block of rows at a time.

    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]])).ravel()
    array([1., 2.])
    """
    solved = np.array(right, np.float64)
    for start in range(0, len(lower), _BLOCK):
        end = start + _BLOCK
        solved[start:end] -= lower[start:end, :start] @ solved[:start]
        solved[start:end] = np.linalg.solve(lower[start:end, start:end], solved[start:end])
    return solved


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
