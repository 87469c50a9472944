"""Sigmoid, softmax and logistic regression, safe against overflow; shared by everything that predicts success."""

from __future__ import annotations

import numpy as np

from cascade_memory.ports.policy import Floats

_CLOSE = 1e-7  # after a Newton step of this size, the error is about its square: another step would change nothing


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
