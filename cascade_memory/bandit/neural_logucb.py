"""NeuralLogUCB: a small neural network on frozen features, with an uncertainty bonus computed from its gradients."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.checked import USUAL, checked_array
from cascade_memory.bandit.credit import Credit, credit_matched
from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.bandit.logistic import sigmoid
from cascade_memory.bandit.similarity import best_first, plain_choice
from cascade_memory.bandit.small_network import SmallNetwork
from cascade_memory.bandit.window import Window, checked_pairs
from cascade_memory.ports.policy import Choice, Feedback, Floats, Slate, State

_WINDOW = 2_048  # pairs that the network is trained on
_REBUILT_AT_ONCE = 32  # outcomes of a history between two trainings of the network


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
