"""The paper's bandit, as it stands in the paper: one theta, a logistic loss on chosen pairs, an upper confidence bound."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from cascade_memory.bandit.credit import credited
from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.bandit.logistic import sigmoid
from cascade_memory.bandit.posterior import Posterior
from cascade_memory.ports.policy import Choice, Feedback, Floats, Slate, State


class NeuralLinLogUCB:
    """Score ``<theta, f> + alpha ||f||_{A^-1}`` (Eq. ucb); theta by one gradient step a reward (Eq. linear-grad).

    ``A = lambda I + sum f f'`` grows with every chosen pair, at selection already, so that open episodes count; a pair whose
    reward never comes is taken back. It never abstains and uses no hindsight: it is here to be compared with, and to sit on
    top of a trained cross-encoder.

    >>> policy = NeuralLinLogUCB(np.array([1.0, 0.0]), alpha=0.0)
    >>> slate = Slate(features=np.array([[0.1, 1.0], [0.9, 0.0]]), similarity=np.array([0.9, 0.1]), groups=np.array([0, 1]))
    >>> policy.select(slate, k=1, abstain=False, seed=0).chosen
    array([1])
    """

    name = "neural-linlogucb-1"

    def __init__(self, theta: Floats, *, alpha: float = 0.1, regularisation: float = 0.1, learning_rate: float = 0.01) -> None:
        self._theta = np.asarray(theta, np.float64)
        self._lambda = regularisation
        self._learning_rate = learning_rate
        self.exploration = UpperConfidence(alpha, burn_in=0)
        self._changing = threading.Lock()  # A is read, changed and put back
        self._reset()

    def _reset(self) -> None:
        self._posterior = Posterior.prior(self._theta, self._lambda)
        self._expected: dict[int, Floats] = {}
        self._rewards = 0.0

    @property
    def version(self) -> int:
        """Number of rewards learned from: each one moves theta."""
        return round(self._rewards)

    @property
    def rewards(self) -> int:
        """Number of rewards learned from."""
        return round(self._rewards)

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:  # noqa: ARG002 - it never abstains
        """Take the k best upper confidence bounds."""
        posterior, rewards = self._posterior, self.rewards
        features = np.asarray(slate.features, np.float64)
        value = features @ posterior.mean
        uncertainty = posterior.uncertainty(features)
        score = value + self.exploration.bonus(uncertainty, rewards)
        chosen = np.lexsort((-slate.similarity, -score))[:k]
        propensity = np.zeros(len(slate))
        propensity[chosen] = 1.0
        return Choice(
            chosen=chosen,
            value=value,
            uncertainty=uncertainty,
            score=score,
            utility=sigmoid(value),
            propensity=propensity,
            baseline=float("nan"),
            abstained=False,
            context=np.zeros(0),
            version=rewards,
            contributions=features * posterior.mean,
        )

    def expect(self, key: int, slate: Slate, choice: Choice) -> None:
        """Add the chosen pairs to A: it needs no reward."""
        pairs = np.asarray(slate.features, np.float64)[choice.chosen]
        with self._changing:
            self._expected[key] = pairs
            for pair in pairs:
                self._posterior = self._posterior.observe(pair)

    def withdraw(self, key: int) -> None:
        """Take the pairs out of A again."""
        with self._changing:
            for pair in self._expected.pop(key, ()):
                self._posterior = self._posterior.withdraw(pair)

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Take one step of Eq. linear-grad for each pair that the reward speaks of."""
        for outcome in feedback:
            fits = len(outcome.chosen) and outcome.slate.features.shape[1] == len(self._theta)  # else another ranker chose
            if outcome.shown and fits:
                with self._changing:
                    self._learn(outcome)

    def _learn(self, outcome: Feedback) -> None:
        self._rewards += outcome.weight
        features = np.asarray(outcome.slate.features, np.float64)
        if self._expected.pop(outcome.key, None) is None:
            for pair in features[outcome.chosen]:
                self._posterior = self._posterior.observe(pair)
        for pair in features[credited(outcome)]:
            theta = self._posterior.mean
            error = float(sigmoid(theta @ pair)) - outcome.reward
            step = outcome.weight * error * pair + self._lambda * theta
            self._posterior = self._posterior.moved_to(theta - self._learning_rate * step)

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Start afresh from these outcomes."""
        self._reset()
        self.update(history)

    def state_dict(self) -> dict[str, Floats]:
        """Return theta, A and the number of rewards; without the open episodes, which a new process may never hear of."""
        with self._changing:
            posterior = self._posterior
            for pairs in self._expected.values():
                for pair in pairs:
                    posterior = posterior.withdraw(pair)
            return {"theta": posterior.mean, "a": posterior.precision, "rewards": np.array([float(self._rewards)])}

    def load_state_dict(self, state: State) -> None:
        """Take over what ``state_dict`` returned."""
        self._reset()
        self._posterior = Posterior(np.array(state["theta"]), np.array(state["a"]))
        self._rewards = float(state["rewards"][0])
