"""The network of NeuralLogUCB, in numpy: one hidden layer of ReLUs with biases, its gradients, and its training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cascade_memory.ports.policy import Floats

_FITTED = 1e-3  # a mean loss that is small enough to stop
_TINY = 1e-6


@dataclass(frozen=True, slots=True)
class SmallNetwork:
    """``h(x) = v . relu(W x + b) + c``.

    >>> network = SmallNetwork(np.eye(2), np.array([0.0, 1.0]), np.array([2.0, 3.0]), 0.5)
    >>> network.value(np.array([[1.0, -4.0]]))
    array([2.5])
    """

    inner: Floats  # W (width, d)
    inner_bias: Floats  # b (width,)
    outer: Floats  # v (width,)
    outer_bias: float  # c

    @classmethod
    def drawn(cls, width: int, dimension: int, seed: int) -> SmallNetwork:
        """Draw weights and biases evenly between -1/sqrt(n) and 1/sqrt(n), where n is the number of inputs of their layer."""
        rng = np.random.default_rng(seed)
        first, second = 1.0 / math.sqrt(dimension), 1.0 / math.sqrt(width)
        return cls(
            rng.uniform(-first, first, (width, dimension)),
            rng.uniform(-first, first, width),
            rng.uniform(-second, second, width),
            float(rng.uniform(-second, second)),
        )

    def value(self, features: Floats) -> Floats:
        """Compute h of each row."""
        return np.maximum(features @ self.inner.T + self.inner_bias, 0.0) @ self.outer + self.outer_bias

    def squares(self, features: Floats) -> Floats:
        """Add up the squared gradients of h over the rows, with respect to W, b, v and c, as one flat vector."""
        slopes, hidden = self._parts(features)
        by_inner = slopes.T @ features**2
        return np.concatenate([by_inner.ravel(), slopes.sum(axis=0), hidden.sum(axis=0), [float(len(features))]])

    def spread(self, features: Floats, design: Floats) -> Floats:
        """Compute ``sum g^2 / U`` for each row, as in ``NeuralLogUCB``; U is ``design``.

        The gradients themselves (77,001 numbers for d = 768) are never stored.
        """
        width, dimension = self.inner.shape
        by_inner, by_inner_bias, by_outer, (by_outer_bias,) = np.split(
            1.0 / design, np.cumsum([width * dimension, width, width])
        )
        slopes, hidden = self._parts(features)
        inner = (slopes * (features**2 @ by_inner.reshape(width, dimension).T)).sum(axis=1)
        return inner + slopes @ by_inner_bias + hidden @ by_outer + by_outer_bias

    def _parts(self, features: Floats) -> tuple[Floats, Floats]:
        """Compute the squared gradients with respect to b and v; those with respect to W are the former times x squared."""
        hidden = features @ self.inner.T + self.inner_bias
        return (hidden > 0.0) * self.outer**2, np.maximum(hidden, 0.0) ** 2

    def trained(
        self,
        features: Floats,
        rewards: Floats,
        weights: Floats,
        order: Sequence[int],
        *,
        steps: int,
        learning_rate: float,
        decay: float,
    ) -> SmallNetwork:
        """Return the network after gradient steps on the logistic loss of one pair each, with weight decay.

        The pairs are taken in this order, again and again, until ``steps`` steps are done or the mean loss of a pass is small.
        """
        # With decay, W shrinks as a whole at each step: it is held as ``scale * stored``, so that only ``scale`` changes.
        stored, scale = self.inner.copy(), 1.0
        inner_bias, outer, outer_bias = self.inner_bias.copy(), self.outer.copy(), self.outer_bias
        shrink, change = 1.0 - learning_rate * decay, np.empty_like(stored)
        loss = 0.0
        for place, ends in _passes(order, steps):
            pair = features[place]
            hidden = scale * (stored @ pair) + inner_bias
            np.maximum(hidden, 0.0, out=hidden)
            output = float(outer @ hidden) + outer_bias
            reward, weight = float(rewards[place]), float(weights[place])
            loss += weight * (max(output, 0.0) - reward * output + math.log1p(math.exp(-abs(output))))
            step = learning_rate * weight * (0.5 * (1.0 + math.tanh(0.5 * output)) - reward)
            by_hidden = (hidden > 0.0) * outer * step
            scale *= shrink
            np.multiply.outer(by_hidden / scale, pair, out=change)
            stored -= change
            inner_bias = shrink * inner_bias - by_hidden
            outer = shrink * outer - step * hidden
            outer_bias = shrink * outer_bias - step
            if scale < _TINY:
                stored, scale = stored * scale, 1.0
            if ends:
                if loss <= _FITTED * len(order):
                    break
                loss = 0.0
        return SmallNetwork(scale * stored, inner_bias, outer, outer_bias)


def _passes(order: Sequence[int], steps: int) -> Iterator[tuple[int, bool]]:
    """Yield places in this order, again and again, each with whether it is the last one of a pass.

    >>> list(_passes([4, 7], 3))
    [(4, False), (7, True), (4, False)]
    """
    n = len(order)
    for count in range(steps if n else 0):
        yield order[count % n], count % n == n - 1
