"""Checks of learned state that comes from a file: one bad number would spoil every later score."""

from __future__ import annotations

import numpy as np

from cascade_memory.ports.policy import Floats, State

LARGEST = 1e12  # limit for any weight, feature or count: no learned number comes near it
USUAL = 1e6  # limit for features and contexts that this library computes: they are standardised
_WIDEST = 1e-9  # the smallest precision of a belief: none of our priors is wider than that


def checked_array(
    state: State,
    name: str,
    shape: tuple[int | None, ...],
    low: float = -LARGEST,
    high: float = LARGEST,
    *,
    unknown: bool = False,
) -> Floats:
    """Return a checked copy of an array of a state; raise ``ValueError`` if its shape or one of its numbers is wrong.

    Args:
        state: The saved state.
        name: The name of the array.
        shape: The shape that it must have (None: any length).
        low: The smallest allowed number.
        high: The largest allowed number.
        unknown: Whether nan is allowed.

    >>> checked_array({"rates": np.array([[0.5, 2.0]])}, "rates", (None, 2), low=0.0)
    array([[0.5, 2. ]])
    """
    if name not in state:
        raise ValueError(f"{name} is missing")
    found = state[name]
    if found.ndim != len(shape) or any(want not in (None, side) for want, side in zip(shape, found.shape, strict=True)):
        raise ValueError(f"{name} has the shape {found.shape}, not {shape}")
    array = np.array(found, np.float64)
    inside = (array >= low) & (array <= high)  # False for nan
    if not (inside | np.isnan(array) if unknown else inside).all():
        raise ValueError(f"{name} holds a number that is not between {low:g} and {high:g}")
    return array


def checked_precision(state: State, name: str, d: int) -> Floats:
    """Return a checked precision matrix: symmetric and positive definite, so that every uncertainty is a number."""
    matrix = checked_array(state, name, (d, d), high=1e30, low=-1e30)
    scale = max(float(np.abs(matrix).max(initial=0.0)), 1.0)
    if not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-6 * scale):
        raise ValueError(f"{name} is not symmetric")
    try:
        np.linalg.cholesky(matrix - _WIDEST * np.eye(d))
    except np.linalg.LinAlgError as error:
        raise ValueError(f"{name} is not positive definite") from error
    return matrix
