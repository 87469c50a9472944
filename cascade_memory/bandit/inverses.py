"""Two ways to keep ``x' A^-1 x`` at hand while A grows by one pair after the other."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cascade_memory.ports.policy import Floats

_BLOCK = 64


class Inverse(Protocol):
    """The inverse of a symmetric positive definite matrix, in some form; never changed, replaced instead."""

    def quadratic(self, rows: Floats) -> Floats:
        """Return ``x' A^-1 x`` for each row x."""
        ...

    def grown(self, x: Floats, weight: float, precision: Floats) -> Inverse:
        """Return the form of ``precision``, which is the old one plus ``weight * x x'``."""
        ...

    @staticmethod
    def of(precision: Floats) -> Inverse:
        """Return this form of a matrix, from scratch."""
        ...

    def sampled(self, noise: Floats) -> Floats:
        """Return a draw from N(0, A^-1), made of standard normal noise."""
        ...


class ShermanMorrison:
    """A^-1 itself, kept up by rank-one updates: O(d^2) each. Rounding adds up, so it is inverted afresh now and then.

    >>> ShermanMorrison(np.eye(2) / 2.0).quadratic(np.array([[2.0, 0.0]]))
    array([2.])
    """

    __slots__ = ("_covariance", "_updates")

    REFACTOR_EVERY = 512

    def __init__(self, covariance: Floats, updates: int = 0) -> None:
        self._covariance, self._updates = covariance, updates

    def quadratic(self, rows: Floats) -> Floats:
        """Return ``x' A^-1 x`` for each row x."""
        return np.einsum("nd,nd->n", rows @ self._covariance, rows)

    def grown(self, x: Floats, weight: float, precision: Floats) -> ShermanMorrison:
        """Update by Sherman and Morrison's formula, except for every 512th time."""
        if self._updates + 1 >= self.REFACTOR_EVERY:
            return self.of(precision)
        direction = self._covariance @ x
        shrunk = np.outer(direction, direction) * (weight / (1.0 + weight * (x @ direction)))
        return ShermanMorrison(self._covariance - shrunk, self._updates + 1)

    @staticmethod
    def of(precision: Floats) -> ShermanMorrison:
        """Invert."""
        return ShermanMorrison(np.linalg.inv(precision))

    def sampled(self, noise: Floats) -> Floats:
        """Draw by way of a factor of A^-1."""
        return np.linalg.cholesky(self._covariance) @ noise


class Cholesky:
    """The triangular factor of A, made when it is asked for: O(d^3 / 3), and no rounding is carried on.

    >>> Cholesky(2.0 * np.eye(2)).quadratic(np.array([[2.0, 0.0]]))
    array([2.])
    """

    __slots__ = ("_factor", "_precision")

    def __init__(self, precision: Floats) -> None:
        self._precision = precision
        self._factor: Floats | None = None  # made once; two threads would make the same

    def quadratic(self, rows: Floats) -> Floats:
        """Return ``|L^-1 x|^2`` for each row x, where ``A = L L'``."""
        return (solve_lower(self._lower(), np.ascontiguousarray(rows.T)) ** 2).sum(axis=0)

    def grown(self, x: Floats, weight: float, precision: Floats) -> Cholesky:
        """Wait until the factor is asked for."""
        del x, weight
        return Cholesky(precision)

    @staticmethod
    def of(precision: Floats) -> Cholesky:
        """Take a matrix."""
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
