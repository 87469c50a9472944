"""The bandit of the paper, unchanged: linear weights theta, a logistic loss on the chosen pairs, an upper confidence bound."""

from __future__ import annotations

import copy
import dataclasses
import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.checked import USUAL, checked_array, checked_precision
from cascade_memory.bandit.credit import Credit, credit_matched
from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.bandit.linear_models import Cholesky, Posterior, ShermanMorrison, fit_logistic, sigmoid
from cascade_memory.bandit.similarity import best_first, plain_choice
from cascade_memory.bandit.window import Window, checked_pairs
from cascade_memory.ports.policy import Choice, Feedback, Floats, Slate, State

if TYPE_CHECKING:
    from typing_extensions import Self

WINDOW = 2_048  # pairs from which A and an exact theta are computed; the newer ones stand in for older ones, see ``_counts``
_MAX_EXPECTED = 1_024  # open episodes
_NEWTON = 15  # Newton steps, starting from the present theta
FORMS = {"cholesky": Cholesky.of, "sherman-morrison": ShermanMorrison.of}


class NeuralLinLogUCB:
    """Score ``<theta, f> + alpha ||f||_{A^-1}`` (Eq. ucb); theta takes one gradient step per reward (Eq. linear-grad).

    ``A = lambda I + sum f f'`` grows with every chosen pair as soon as it is chosen, so that open episodes count; a pair whose
    reward never comes is removed again. With a discount, a pair enters A only when it is rewarded. This policy never abstains
    and uses no hindsight. It serves for comparison, and as the head of a trained cross-encoder.

    >>> policy = NeuralLinLogUCB(np.array([1.0, 0.0]), alpha=0.0)
    >>> slate = Slate(features=np.array([[0.1, 1.0], [0.9, 0.0]]), similarity=np.array([0.9, 0.1]), groups=np.array([0, 1]))
    >>> policy.select(slate, k=1, abstain=False, seed=0).chosen
    array([1])

    Args:
        theta: The initial weights: the last layer of the reranker.
        alpha: The weight of the uncertainty bonus.
        regularisation: lambda, the strength of the L2 regularisation.
        learning_rate: eta, the size of the gradient step.
        refit: "sgd" takes the paper's gradient step; "exact" minimises the regularised loss over the last pairs, as the paper's
            theory assumes.
        scale: "logit" is the score of the paper; "probability" is that of the authors' code,
            ``sigmoid(<theta, f>) + alpha * bonus``.
        decay: False leaves ``lambda theta`` out of the gradient step, as the authors' code does.
        discount: Below 1, old pairs count less and less: ``A <- discount A + f f' + (1 - discount) lambda I``.
        form: How ``f' A^-1 f`` is computed; see docs/decisions/15.
        credit: Chooses to which of several chosen cases a reward is attributed.
    """

    loss = "logistic"

    def __init__(
        self,
        theta: Floats,
        *,
        alpha: float = 0.1,
        regularisation: float = 0.1,
        learning_rate: float = 0.01,
        refit: Literal["sgd", "exact"] = "sgd",
        scale: Literal["logit", "probability"] = "logit",
        decay: bool = True,
        discount: float = 1.0,
        form: Literal["cholesky", "sherman-morrison"] = "cholesky",
        credit: Credit = credit_matched,
    ) -> None:
        self.name = "neural-linlogucb-2"
        self._theta = np.asarray(theta, np.float64)
        self._lambda, self._learning_rate = regularisation, learning_rate
        self.exact, self._probability, self._decay, self._discount = refit == "exact", scale == "probability", decay, discount
        self._form, self._credit = FORMS[form], credit
        self.exploration = UpperConfidence(alpha, burn_in=0)
        self._changing = threading.Lock()  # guards reading, changing and replacing A; ``select`` never takes it
        self._reset()

    def _reset(self) -> None:
        self.posterior = Posterior.prior(self._theta, self._lambda, self._form)
        self.expected: dict[int, Floats] = {}  # chosen pairs whose reward is still pending
        self._window = Window(WINDOW, len(self._theta))
        self._rewards = 0.0

    @property
    def theta(self) -> Floats:
        """The present weights."""
        return self.posterior.mean

    @property
    def version(self) -> int:
        """Number of rewards learned from: each of them changes theta."""
        return round(self._rewards)

    @property
    def rewards(self) -> int:
        """Number of rewards learned from."""
        return round(self._rewards)

    # -- choosing ----------------------------------------------------------------------------------------------------

    def select(self, slate: Slate, k: int, *, abstain: bool, seed: int) -> Choice:
        """Choose the k highest upper confidence bounds."""
        del abstain  # this policy never abstains
        posterior, rewards = self.posterior, self.rewards
        features = np.asarray(slate.features, np.float64)
        value = features @ posterior.mean
        uncertainty = posterior.uncertainty(features)
        score = self._score(features, value, uncertainty, posterior, seed)
        return dataclasses.replace(
            plain_choice(slate, best_first(slate, score)[:k], score),
            value=value,
            uncertainty=uncertainty,
            utility=self._success(value),
            version=rewards,
            contributions=features * posterior.mean,
        )

    def _score(self, features: Floats, value: Floats, uncertainty: Floats, posterior: Posterior, seed: int) -> Floats:
        """Compute Eq. ucb for each candidate."""
        del features, posterior, seed  # subclasses that explore in another way need them
        exploitation = sigmoid(value) if self._probability else value
        return exploitation + self.exploration.bonus(uncertainty, self.rewards)

    def _success(self, value: Floats) -> Floats:
        return sigmoid(value)

    # -- learning ----------------------------------------------------------------------------------------------------

    def expect(self, key: int, slate: Slate, choice: Choice) -> None:
        """Add the chosen pairs to A, which does not depend on their rewards; with a discount, do nothing."""
        if self._discount < 1.0:
            return  # a discounted pair could not be removed exactly, so with a discount pairs count only once rewarded
        pairs = np.asarray(slate.features, np.float64)[choice.chosen]
        with self._changing:
            self.expected[key] = pairs
            self.posterior = self._seen(self.posterior, pairs)
            if len(self.expected) > _MAX_EXPECTED:  # the oldest will probably never be rewarded
                for pair in self.expected.pop(next(iter(self.expected))):
                    self.posterior = self.posterior.withdraw(pair)

    def withdraw(self, key: int) -> None:
        """Undo ``expect`` for a recall that will get no reward: subtract from A (see the class) what its pairs added."""
        with self._changing:
            for pair in self.expected.pop(key, ()):
                self.posterior = self.posterior.withdraw(pair)

    def _seen(self, posterior: Posterior, pairs: Floats) -> Posterior:
        for pair in pairs:
            if self._discount < 1.0:
                kept = self._discount * posterior.precision + (1.0 - self._discount) * self._lambda * np.eye(len(pair))
                posterior = posterior.with_precision(kept)
            posterior = posterior.observe(pair)
        return posterior

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Take one gradient step for each pair that gets credit for the reward."""
        for outcome in feedback:
            if self.teaches(outcome):
                self.observe(outcome)
                self.step(outcome)
        self.settle()

    def teaches(self, outcome: Feedback) -> bool:
        """Say whether this policy can learn from an outcome: a case was shown, and its features are of the right kind."""
        fits = len(outcome.chosen) and outcome.slate.features.shape[1] == len(self._theta)
        return bool(outcome.shown and fits) and bool((np.abs(outcome.slate.features) <= USUAL).all())

    def credited(self, outcome: Feedback) -> NDArray[np.int64]:
        """Return the chosen positions that get credit for the reward."""
        return self._credit(outcome)

    def observe(self, outcome: Feedback) -> None:
        """Add an outcome's pairs to the window, and to A unless ``expect`` added them already."""
        features = np.asarray(outcome.slate.features, np.float64)
        self._rewards += outcome.weight / outcome.trust
        with self._changing:
            if self.expected.pop(outcome.key, None) is None:
                self.posterior = self._seen(self.posterior, features[outcome.chosen])
        credited = set(self.credited(outcome).tolist())
        for place in outcome.chosen.tolist():
            self._window.append(features[place], outcome.reward if place in credited else math.nan, outcome.weight)

    def settle(self) -> None:
        """With ``refit="exact"``, move theta to the minimum of the loss over the window."""
        if self.exact and len(self._window):
            self._move_to(self._minimum())

    def step(self, outcome: Feedback) -> None:
        """With ``refit="sgd"``, move theta by one gradient step (Eq. linear-grad)."""
        for place in () if self.exact else self.credited(outcome):
            theta, pair = self.theta, np.asarray(outcome.slate.features[place], np.float64)
            step = outcome.weight * self._slope(pair, outcome.reward) * pair + (self._lambda * theta if self._decay else 0.0)
            self._move_to(theta - self._learning_rate * step)

    def _slope(self, pair: Floats, reward: float) -> float:
        """Compute the derivative of the loss with respect to ``<theta, f>``."""
        return float(sigmoid(self.theta @ pair)) - reward

    def _minimum(self) -> Floats:
        """Find the theta that minimises the regularised logistic loss over the window."""
        pairs, rewards, weights = self._labelled()
        nothing = np.zeros(len(self._theta))
        return fit_logistic(pairs, rewards, weights, start=self.theta, prior=nothing, precision=self._lambda, steps=_NEWTON)

    def _labelled(self) -> tuple[Floats, Floats, Floats]:
        window = self._window
        known = ~np.isnan(window.labels)
        return window.features[known], window.labels[known], (window.weights * self._counts())[known]

    def _counts(self) -> Floats:
        """Return for how many pairs each pair in the window counts.

        With a discount, older pairs count less. Without one, each pair also stands for some of those that have left the window.
        """
        n = len(self._window)
        return self._discount ** np.arange(n - 1, -1, -1.0) if self._discount < 1.0 else np.full(n, self._window.crowd)

    def _move_to(self, theta: Floats) -> None:
        with self._changing:
            self.posterior = self.posterior.moved_to(theta)

    @property
    def pairs(self) -> int:
        """Number of pairs ever learned from, including those that have left the window."""
        return self._window.ever

    # -- as the head of a trained encoder ----------------------------------------------------------------------------

    def renewed(self, theta: Floats, places: Sequence[int], features: Floats) -> Self:
        """Return a copy of this bandit for an encoder that was trained further: a new head, new features of the same pairs.

        ``features`` (m, d) are those that the new encoder computes for the window's pairs at these places; the other pairs keep
        their old features until their turn comes. A is computed again from the window.
        """
        policy = copy.copy(self)
        policy._changing = threading.Lock()
        with self._changing:
            policy._window, policy.expected = self._window.copy(), dict(self.expected)
        pairs = policy._window.features
        pairs[list(places)] = features
        precision = self._lambda * np.eye(len(theta)) + (pairs * policy._counts()[:, None]).T @ pairs
        posterior = Posterior(np.asarray(theta, np.float64), precision, self._form(precision))
        for pairs in policy.expected.values():
            posterior = policy._seen(posterior, pairs)
        policy.posterior = posterior
        return policy

    def rebuild(self, history: Sequence[Feedback]) -> None:
        """Drop everything learned, and learn again from these outcomes."""
        self._reset()
        self.update(history)

    # -- keeping -----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Floats]:
        """Export theta, A, the window and the counters; not the open episodes, which may never be rewarded in a new process."""
        with self._changing:
            posterior = self.posterior
            for pairs in self.expected.values():
                for pair in pairs:
                    posterior = posterior.withdraw(pair)
        window = self._window
        return {
            "theta": posterior.mean,
            "a": posterior.precision,
            "counters": np.array([float(self._rewards), float(window.ever)]),
            "window.pairs": window.features.astype(np.float32),
            "window.labels": np.column_stack([window.labels, window.weights]),
        }

    def load_state_dict(self, state: State) -> None:
        """Load what ``state_dict`` returned; raise ``ValueError``, and change nothing, if the arrays are not such a state."""
        d = len(self._theta)
        theta, precision = checked_array(state, "theta", (d,)), checked_precision(state, "a", d)
        rewards, ever = checked_array(state, "counters", (2,), low=0.0)
        pairs, labels, weights = checked_pairs(state, WINDOW, d)
        self._reset()
        self.posterior = Posterior(theta, precision, self._form(precision))
        self._rewards = float(rewards)
        for pair, label, weight in zip(pairs, labels, weights, strict=True):
            self._window.append(pair, float(label), float(weight))
        self._window.ever = max(int(ever), len(pairs))
