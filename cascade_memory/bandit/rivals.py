"""Bandits with which the paper compares its own; each differs from it in one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from cascade_memory.bandit.linear_models import Posterior
from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
from cascade_memory.ports.policy import Floats


class LinLogUCB(NeuralLinLogUCB):
    """Logistic regression on frozen features. It starts at ``theta_0 = 1/d``; its bonus uses ``V = lambda I + sum f f'``.

    >>> LinLogUCB(4).theta
    array([0.25, 0.25, 0.25, 0.25])
    """

    def __init__(self, dimension: int, **options: Any) -> None:
        options.setdefault("refit", "exact")
        super().__init__(np.full(dimension, 1.0 / dimension), **options)
        self.name = "linlogucb-1"


class NeuralLinUCB(NeuralLinLogUCB):
    """A trained encoder with a *ridge regression* head: squared loss, ``theta = A^-1 sum r f``, no sigmoid anywhere.

    >>> NeuralLinUCB(np.zeros(2)).name
    'neural-linucb-1'
    """

    loss = "squared"

    def __init__(self, theta: Floats, **options: Any) -> None:
        options.setdefault("refit", "exact")
        super().__init__(theta, **options)
        self.name = "neural-linucb-1"

    def _success(self, value: Floats) -> Floats:
        return np.clip(value, 0.0, 1.0)

    def _slope(self, pair: Floats, reward: float) -> float:
        return float(self.theta @ pair) - reward

    def _minimum(self) -> Floats:
        pairs, rewards, weights = self._labelled()
        weighted = pairs * weights[:, None]
        return np.linalg.solve(weighted.T @ pairs + self._lambda * np.eye(pairs.shape[1]), weighted.T @ rewards)


class ThompsonSampling(NeuralLinLogUCB):
    """Thompson sampling: draws theta from ``N(theta, alpha^2 A^-1)`` for each recall and shows the best cases under the draw.

    The propensities are 0 or 1: they say what this draw showed, not how likely it was to be shown.

    >>> ThompsonSampling(np.zeros(2)).name
    'thompson-1'
    """

    def __init__(self, theta: Floats, **options: Any) -> None:
        super().__init__(theta, **options)
        self.name = "thompson-1"

    def _score(self, features: Floats, value: Floats, uncertainty: Floats, posterior: Posterior, seed: int) -> Floats:
        del value, uncertainty
        return features @ posterior.draw(seed, self.exploration.alpha)
