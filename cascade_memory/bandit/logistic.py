"""Small numerically safe pieces of logistic maths, shared by everything that predicts a success."""

from __future__ import annotations

import numpy as np

from cascade_memory.ports.policy import Floats


def sigmoid(x: Floats) -> Floats:
    """Return ``1 / (1 + e^-x)`` without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def softmax(x: Floats) -> Floats:
    """Return ``e^x`` scaled to sum to one over the last axis."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


class LogisticRegression:
    """Bayesian logistic regression on a bounded window: MAP weights under N(prior, I / precision), by Newton's method.

    >>> model = LogisticRegression(prior=np.array([0.0, 1.0]), precision=1.0, window=64)
    >>> float(model.predict(np.array([1.0, 0.0])))
    0.5
    >>> for _ in range(30): model.add(np.array([1.0, 0.0]), 1.0)
    >>> model.fit()
    >>> bool(model.predict(np.array([1.0, 0.0])) > 0.9)
    True
    """

    def __init__(self, prior: Floats, precision: float, window: int) -> None:
        self.prior = np.asarray(prior, np.float64)
        self.precision = precision
        self.weights = self.prior.copy()
        self._inputs = np.zeros((window, len(self.prior)))
        self._labels = np.zeros(window)
        self._sample_weights = np.zeros(window)
        self._next = 0
        self._filled = 0

    def predict(self, inputs: Floats) -> Floats:
        """Return the probability of a positive label for one row or for many."""
        return sigmoid(np.asarray(inputs @ self.weights))

    def add(self, inputs: Floats, label: float, weight: float = 1.0) -> None:
        """Remember a (soft) label; the oldest one makes room."""
        self._inputs[self._next] = inputs
        self._labels[self._next] = label
        self._sample_weights[self._next] = weight
        self._next = (self._next + 1) % len(self._labels)
        self._filled = min(self._filled + 1, len(self._labels))

    def fit(self, steps: int = 4) -> None:
        """Move the weights to the mode of the posterior over the window."""
        n = self._filled
        if n == 0:
            return
        inputs, labels, importance = self._inputs[:n], self._labels[:n], self._sample_weights[:n]
        weights = self.weights
        for _ in range(steps):
            predicted = sigmoid(inputs @ weights)
            gradient = inputs.T @ (importance * (predicted - labels)) + self.precision * (weights - self.prior)
            curvature = (inputs * (importance * predicted * (1 - predicted))[:, None]).T @ inputs
            step = np.linalg.solve(curvature + self.precision * np.eye(len(weights)), gradient)
            # Far from the mode the quadratic model is poor: never move a weight by more than 2 at once.
            weights = weights - step * min(1.0, 2.0 / (np.abs(step).max() + 1e-12))
        self.weights = weights

    def state(self) -> Floats:
        """Return everything as one flat array."""
        n = self._filled
        order = (np.arange(n) + self._next - n) % len(self._labels)
        rows = np.column_stack([self._inputs[order], self._labels[order], self._sample_weights[order]])
        return np.concatenate([self.weights, rows.ravel()])

    def load(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        d = len(self.prior)
        self.weights = np.array(state[:d])
        self._next = self._filled = 0
        for row in state[d:].reshape(-1, d + 2):
            self.add(row[:d], float(row[d]), float(row[d + 1]))
