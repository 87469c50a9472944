"""NeuralLogUCB: a small neural network on frozen features, with an uncertainty bonus computed from its gradients.

The network is in numpy: one hidden layer of ReLUs with biases, its gradients, and its training.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.checked import USUAL, checked_array
from cascade_memory.bandit.credit import Credit, credit_matched
from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.bandit.linear_models import sigmoid
from cascade_memory.bandit.similarity import best_first, plain_choice
from cascade_memory.bandit.window import Window, checked_pairs
from cascade_memory.ports.policy import Choice, Feedback, Floats, Slate, State

_FITTED = 1e-3  # a mean loss that is small enough to stop
_TINY = 1e-6
_WINDOW = 2_048  # pairs that the network is trained on
_REBUILT_AT_ONCE = 32  # outcomes of a history between two trainings of the network


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


class NeuralLogUCB:
    """Score ``h(x) + alpha sqrt(lambda sum g^2 / U)``, where ``g`` is the gradient of h at x and ``U = lambda + sum g^2``.

    The network h (one hidden layer of ReLUs with biases) is trained further after each reward, by stochastic gradient descent
    on the logistic loss with weight decay: one pair per step, pass after pass over the last 2,048 pairs in a random order,
    until ``samples`` steps are done or the mean loss of a pass is at most 0.001. U grows with every chosen pair as soon as it
    is chosen.

    >>> NeuralLogUCB(dimension=3).name
    'neural-logucb-2'

    Args:
        dimension: The length of a feature vector.
        width: The number of hidden units.
        alpha: The weight of the uncertainty bonus.
        regularisation: lambda: the initial value of U, and the weight decay.
        learning_rate: The size of a gradient step.
        samples: The most gradient steps after one reward.
        seed: Decides the initial weights and the order of the pairs.
        credit: Chooses to which of several chosen cases a reward is attributed.
    """

    name = "neural-logucb-2"  # the first version had no biases; what it has saved is learned again
    loss = "logistic"

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
        if learning_rate * regularisation >= 1.0:
            raise ValueError("learning_rate times regularisation must be below 1: each step would turn the weights around")
        self._shape = (width, dimension)
        self._lambda, self._learning_rate, self._samples, self._seed = regularisation, learning_rate, samples, seed
        self.exploration = UpperConfidence(alpha, burn_in=0)
        self._credit = credit
        self._changing = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        width, dimension = self._shape
        self._network = SmallNetwork.drawn(width, dimension, self._seed)
        self._design = np.full(_parameters(width, dimension), self._lambda)  # U
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
        uncertainty = np.sqrt(self._lambda * network.spread(features, design))
        score = value + self.exploration.bonus(uncertainty, self.rewards)
        return dataclasses.replace(
            plain_choice(slate, best_first(slate, score)[:k], score),
            value=value,
            uncertainty=uncertainty,
            utility=sigmoid(value),
            version=self.version,
        )

    def _squares(self, slate: Slate, chosen: NDArray[np.int64]) -> Floats:
        return self._network.squares(np.asarray(slate.features, np.float64)[chosen])

    def expect(self, key: int, slate: Slate, choice: Choice) -> None:
        """Add the chosen pairs to U."""
        squares = self._squares(slate, choice.chosen)
        with self._changing:
            self.expected[key] = squares
            self._design = self._design + squares

    def withdraw(self, key: int) -> None:
        """Undo ``expect`` for a recall that will get no reward: subtract from U (see the class) what its pairs added."""
        with self._changing:
            squares = self.expected.pop(key, None)
            if squares is not None:
                self._design = self._design - squares

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Learn from outcomes."""
        for outcome in feedback:
            if self._observed(outcome):
                self._train()

    def _observed(self, outcome: Feedback) -> bool:
        """Add credited pairs to the window, and chosen ones to U unless ``expect`` did; False if the outcome is unusable."""
        fits = len(outcome.chosen) and outcome.slate.features.shape[1] == self._shape[1]
        if not outcome.shown or not fits or not (np.abs(outcome.slate.features) <= USUAL).all():
            return False
        self._rewards += outcome.weight / outcome.trust
        squares = self._squares(outcome.slate, outcome.chosen)
        with self._changing:
            if self.expected.pop(outcome.key, None) is None:
                self._design = self._design + squares
        for place in self._credit(outcome):
            self._window.append(outcome.slate.features[place], outcome.reward, outcome.weight)
        return True

    def _train(self) -> None:
        """Train on the window, in an order that is seeded by the number of rewards."""
        window = self._window
        rng = np.random.default_rng([self._seed, self.rewards])
        self._network = self._network.trained(
            window.features,
            window.labels,
            window.weights,
            rng.permutation(len(window)).tolist(),
            steps=self._samples,
            learning_rate=self._learning_rate,
            decay=self._lambda,
        )

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Drop everything learned, and learn again from these outcomes.

        The network is trained after every 32nd outcome and at the end. Training after each outcome, as ``update`` does, took
        minutes.
        """
        self._reset()
        for start in range(0, len(history), _REBUILT_AT_ONCE):
            some = history[start : start + _REBUILT_AT_ONCE]
            if any([self._observed(outcome) for outcome in some]):
                self._train()

    def state_dict(self) -> dict[str, Floats]:
        """Export the network, U (the sums of squared gradients, see the class), the window and the number of rewards."""
        with self._changing:
            design = self._design - sum(self.expected.values(), start=np.zeros(1))
        return {
            "inner": self._network.inner,
            "inner_bias": self._network.inner_bias,
            "outer": self._network.outer,
            "outer_bias": np.array([self._network.outer_bias]),
            "design": design,
            "rewards": np.array([float(self._rewards)]),
            "window.pairs": self._window.features.copy(),
            "window.labels": np.column_stack([self._window.labels, self._window.weights]),
        }

    def load_state_dict(self, state: State) -> None:
        """Load what ``state_dict`` returned; raise ``ValueError``, and change nothing, if the arrays are not such a state."""
        width, dimension = self._shape
        network = SmallNetwork(
            checked_array(state, "inner", self._shape, -USUAL, USUAL),
            checked_array(state, "inner_bias", (width,), -USUAL, USUAL),
            checked_array(state, "outer", (width,), -USUAL, USUAL),
            float(checked_array(state, "outer_bias", (1,), -USUAL, USUAL)[0]),
        )
        design = checked_array(state, "design", (_parameters(width, dimension),), low=1e-9)
        (rewards,) = checked_array(state, "rewards", (1,), low=0.0)
        pairs, labels, weights = checked_pairs(state, _WINDOW, dimension)
        self._reset()
        self._network, self._design, self._rewards = network, design, float(rewards)
        for pair, label, weight in zip(pairs, labels, weights, strict=True):
            self._window.append(pair, float(label), float(weight))


def _parameters(width: int, dimension: int) -> int:
    """Return the number of the network's weights and biases.

    >>> _parameters(100, 768)
    77001
    """
    return width * dimension + 2 * width + 1
