"""NeuralLogUCB: a small neural network on frozen features, with an uncertainty bonus computed from its gradients."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.checked import USUAL, checked_array
from cascade_memory.bandit.credit import Credit, credit_matched
from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.bandit.logistic import sigmoid
from cascade_memory.bandit.similarity import best_first, plain_choice
from cascade_memory.bandit.window import Window, checked_pairs
from cascade_memory.ports.policy import Choice, Feedback, Floats, Slate, State

_WINDOW = 2_048  # pairs that the network is trained on
_BATCH = 50


@dataclass(frozen=True, slots=True)
class _Network:
    """``h(x) = v . relu(W x)``."""

    inner: Floats  # W (width, d)
    outer: Floats  # v (width,)

    def value(self, features: Floats) -> Floats:
        """Compute h of each row."""
        return np.maximum(features @ self.inner.T, 0.0) @ self.outer

    def gradients(self, features: Floats) -> Floats:
        """Compute the gradient of h with respect to all weights, one flat row per feature vector."""
        hidden = features @ self.inner.T
        by_inner = ((hidden > 0.0) * self.outer)[:, :, None] * features[:, None, :]
        return np.concatenate([by_inner.reshape(len(features), -1), np.maximum(hidden, 0.0)], axis=1)

    def moved(self, step: Floats) -> _Network:
        """Return a network with this flat step subtracted from all weights."""
        split = self.inner.size
        return _Network(self.inner - step[:split].reshape(self.inner.shape), self.outer - step[split:])


class NeuralLogUCB:
    """Score ``h(x) + alpha sqrt(lambda sum g^2 / U)``, where ``g`` is the gradient of h at x and ``U = lambda + sum g^2``.

    The network h (one hidden layer of ReLUs) minimises the logistic loss over the last pairs, by stochastic gradient descent
    with at most 1,000 samples per reward. U grows with every chosen pair as soon as it is chosen.

    >>> NeuralLogUCB(dimension=3).name
    'neural-logucb-1'
    """

    name = "neural-logucb-1"

    def __init__(
        self,
        dimension: int,
        *,
        width: int = 100,
        alpha: float = 0.1,
        regularisation: float = 0.1,
        learning_rate: float = 0.01,
        samples: int = 1_000,
        seed: int = 0,
        credit: Credit = credit_matched,
    ) -> None:
        self._shape = (width, dimension)
        self._lambda, self._learning_rate, self._samples, self._seed = regularisation, learning_rate, samples, seed
        self.exploration = UpperConfidence(alpha, burn_in=0)
        self._credit = credit
        self._changing = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        width, dimension = self._shape
        rng = np.random.default_rng(self._seed)
        inner = rng.normal(size=self._shape) * np.sqrt(2.0 / dimension)
        self._network = _Network(inner, rng.normal(size=width) * np.sqrt(1.0 / width))
        self._design = np.full(width * dimension + width, self._lambda)  # U
        self.expected: dict[int, Floats] = {}  # what each recall with a pending reward has added to U
        self._window = Window(_WINDOW, dimension)
        self._rewards = 0.0

    @property
    def version(self) -> int:
        """Number of rewards learned from."""
        return round(self._rewards)

    @property
    def rewards(self) -> int:
        """Number of rewards learned from."""
        return round(self._rewards)

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:
        """Choose the k highest upper confidence bounds."""
        del abstain, seed
        network, design = self._network, self._design
        features = np.asarray(slate.features, np.float64)
        value = network.value(features)
        uncertainty = np.sqrt(self._lambda * (network.gradients(features) ** 2 / design).sum(axis=1))
        score = value + self.exploration.bonus(uncertainty, self.rewards)
        return dataclasses.replace(
            plain_choice(slate, best_first(slate, score)[:k], score),
            value=value,
            uncertainty=uncertainty,
            utility=sigmoid(value),
            version=self.version,
        )

    def _squares(self, slate: Slate, chosen: NDArray[np.int64]) -> Floats:
        return (self._network.gradients(np.asarray(slate.features, np.float64)[chosen]) ** 2).sum(axis=0)

    def expect(self, key: int, slate: Slate, choice: Choice) -> None:
        """Add the chosen pairs to U."""
        squares = self._squares(slate, choice.chosen)
        with self._changing:
            self.expected[key] = squares
            self._design = self._design + squares

    def withdraw(self, key: int) -> None:
        """Remove the chosen pairs from U again."""
        with self._changing:
            squares = self.expected.pop(key, None)
            if squares is not None:
                self._design = self._design - squares

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Learn from outcomes."""
        for outcome in feedback:
            fits = len(outcome.chosen) and outcome.slate.features.shape[1] == self._shape[1]
            if outcome.shown and fits and (np.abs(outcome.slate.features) <= USUAL).all():
                self._learn(outcome)

    def _learn(self, outcome: Feedback) -> None:
        self._rewards += outcome.weight
        squares = self._squares(outcome.slate, outcome.chosen)
        with self._changing:
            if self.expected.pop(outcome.key, None) is None:
                self._design = self._design + squares
        for place in self._credit(outcome):
            self._window.append(outcome.slate.features[place], outcome.reward, outcome.weight)
        self._train()

    def _train(self) -> None:
        """Train on the window by stochastic gradient descent, in an order that is seeded by the number of rewards."""
        features, rewards, weights = self._window.features, self._window.labels, self._window.weights
        n = len(features)
        rng = np.random.default_rng([self._seed, self.rewards])
        order = rng.permutation(np.resize(np.arange(n), min(self._samples, 10 * n)))
        network = self._network
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            error = weights[rows] * (sigmoid(network.value(features[rows])) - rewards[rows])
            hidden = features[rows] @ network.inner.T
            active = (hidden > 0.0) * network.outer * error[:, None]
            step = np.concatenate([(active.T @ features[rows]).ravel(), np.maximum(hidden, 0.0).T @ error]) / len(rows)
            network = network.moved(self._learning_rate * step)
        self._network = network

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Drop everything learned, and learn again from these outcomes."""
        self._reset()
        self.update(history)

    def state_dict(self) -> dict[str, Floats]:
        """Export the network, U, the window and the number of rewards."""
        with self._changing:
            design = self._design - sum(self.expected.values(), start=np.zeros(1))
        return {
            "inner": self._network.inner,
            "outer": self._network.outer,
            "design": design,
            "rewards": np.array([float(self._rewards)]),
            "window.pairs": self._window.features.copy(),
            "window.labels": np.column_stack([self._window.labels, self._window.weights]),
        }

    def load_state_dict(self, state: State) -> None:
        """Load what ``state_dict`` returned; raise ``ValueError``, and change nothing, if the arrays are not such a state."""
        width, dimension = self._shape
        network = _Network(
            checked_array(state, "inner", self._shape, -USUAL, USUAL), checked_array(state, "outer", (width,), -USUAL, USUAL)
        )
        design = checked_array(state, "design", (width * dimension + width,), low=1e-9)
        (rewards,) = checked_array(state, "rewards", (1,), low=0.0)
        pairs, labels, weights = checked_pairs(state, _WINDOW, dimension)
        self._reset()
        self._network, self._design, self._rewards = network, design, float(rewards)
        for pair, label, weight in zip(pairs, labels, weights, strict=True):
            self._window.append(pair, float(label), float(weight))
