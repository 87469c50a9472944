"""Learns to order candidates from which of them turned out to be right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cascade_memory.bandit.checked import USUAL, checked_array, checked_precision
from cascade_memory.bandit.linear_models import Posterior, sigmoid
from cascade_memory.ports.policy import Floats, State

_NEVER = -1e9  # logit of the padding, where a recall has fewer candidates than the largest one


class RankingHead:
    """Conditional logit with a Gaussian prior: P(candidate i is right) = softmax(features @ theta)_i.

    There are two kinds of evidence, each in a window of bounded size:

    * **hindsight**: after a success it is known which candidates agree with the verified solution. Their log likelihood is
      ``log sum_{i agrees} softmax_i``. It compares candidates of one recall, so it does not depend on how hard the tasks are.
    * **bandit**: after a failure, or where solutions cannot be compared, only the reward of the chosen pair is known:
      ``P(success) = s0 + (s1 - s0) sigma((x - mean) theta + b)``. A task may succeed with a case that does not fit (s0) and
      fail with one that does (1 - s1), and the intercept b stands for how often cases fit at all. Without these parameters,
      theta would be distorted to explain such outcomes.

    The posterior is a Laplace approximation: damped Newton steps find the mode, and the curvature there is the precision.
    """

    def __init__(self, prior: Floats, precision: float, window: int = 512) -> None:
        self.prior = np.asarray(prior, np.float64)
        self.precision = precision
        self.window = window
        self.posterior = Posterior.prior(self.prior, precision)
        self._hindsight: list[tuple[Floats, Floats, float]] = []  # (features, agreement, weight)
        self._bandit: list[tuple[Floats, float, float, int]] = []  # (feature, reward, weight, solution)
        self._intercept = 0.0

    def add_hindsight(self, features: Floats, agreement: Floats, weight: float) -> None:
        """Record which candidates agreed. A recall in which all or none agreed says nothing about the order: leave it out."""
        if 0.0 < agreement.sum() < len(agreement):
            self._hindsight.append((np.asarray(features, np.float64), np.asarray(agreement, np.float64), weight))
            del self._hindsight[: -self.window]

    def add_bandit(self, feature: Floats, reward: float, weight: float, group: int = 0) -> None:
        """Record the reward of a chosen pair, and the solution that was shown."""
        self._bandit.append((np.asarray(feature, np.float64), reward, weight, group))
        del self._bandit[: -self.window]

    def doubt(self, group: int, weight: float) -> None:
        """Limit the weight of a solution's rewards: its failures are blamed on the solution and not on the signals."""
        self._bandit = [row if row[3] != group else (*row[:2], min(row[2], weight), group) for row in self._bandit]

    def lean_on(self, prior: Floats) -> None:
        """Make these weights the mean of the prior from the next fit on; without any evidence they take effect at once."""
        self.prior = np.asarray(prior, np.float64)
        if not (self._hindsight or self._bandit):
            self.posterior = Posterior.prior(self.prior, self.precision)

    def fit(self, *, rates: tuple[float, float] = (0.0, 1.0), steps: int = 2) -> None:
        """Move theta towards the mode and take the curvature there as the precision; ``rates`` are (s0, s1)."""
        if not (self._hindsight or self._bandit):
            return
        problem = Problem(self._hindsight, self._bandit, self.prior, self.precision, rates)
        # The intercept is fitted together with theta, as the last coordinate.
        point = np.append(self.posterior.mean, self._intercept)
        loss = problem.loss(point)
        curvature = problem.curvature(point)
        for _ in range(steps):
            direction = np.linalg.solve(curvature, problem.gradient(point))
            point, loss, moved = _line_search(problem, point, direction, loss)
            if not moved:
                break
            curvature = problem.curvature(point)
        self._intercept = float(point[-1])
        self.posterior = Posterior(point[:-1], _without_intercept(curvature))

    def state(self) -> dict[str, Floats]:
        """Export the window and the mode as named arrays."""
        sizes = np.array([len(row[1]) for row in self._hindsight], np.float64)
        d = len(self.prior)
        return {
            "mode": np.append(self.posterior.mean, self._intercept),
            "sizes": sizes,
            "features": np.concatenate([row[0] for row in self._hindsight]) if len(sizes) else np.zeros((0, d)),
            "agreement": np.concatenate([row[1] for row in self._hindsight]) if len(sizes) else np.zeros(0),
            "weights": np.array([row[2] for row in self._hindsight]),
            "bandit": np.array([[*x, *rest] for x, *rest in self._bandit]).reshape(-1, d + 3),
            "precision": self.posterior.precision,
        }

    def load(self, state: State) -> None:
        """Load what ``state`` returned; raise ``ValueError``, and change nothing, if the arrays are not such a state."""
        d = len(self.prior)
        mode, precision = checked_array(state, "mode", (d + 1,), -USUAL, USUAL), checked_precision(state, "precision", d)
        features = checked_array(state, "features", (None, d), -USUAL, USUAL)
        agreement, sizes = (
            checked_array(state, "agreement", (len(features),), 0.0, 1.0),
            checked_array(state, "sizes", (None,), 2.0),
        )
        weights = checked_array(state, "weights", (len(sizes),), 0.0, 1.0)
        bandit = checked_array(state, "bandit", (None, d + 3), -(2.0**53), 2.0**53)
        if sizes.sum() != len(features) or (sizes % 1.0).any() or max(len(sizes), len(bandit)) > self.window:
            raise ValueError("sizes do not match the recalls of the window")
        rewards, groups = bandit[:, d : d + 2], bandit[:, d + 2]
        if not ((rewards >= 0.0) & (rewards <= 1.0)).all() or (np.abs(bandit[:, :d]) > USUAL).any() or (groups % 1.0).any():
            raise ValueError("bandit holds a row that is not a rewarded pair")
        ends = np.cumsum(sizes).astype(int)
        starts = ends - sizes.astype(int)
        self._hindsight = [(features[a:b], agreement[a:b], float(w)) for a, b, w in zip(starts, ends, weights, strict=True)]
        self._bandit = [(row[:d], float(row[d]), float(row[d + 1]), int(row[d + 2])) for row in bandit]
        self._intercept = float(mode[-1])
        self.posterior = Posterior(mode[:-1], precision)


def _without_intercept(curvature: Floats) -> Floats:
    """Integrate the last coordinate out of a Gaussian precision (Schur complement)."""
    rest, cross, last = curvature[:-1, :-1], curvature[:-1, -1], curvature[-1, -1]
    return rest - np.outer(cross, cross) / last


def _line_search(problem: Problem, point: Floats, direction: Floats, loss: float) -> tuple[Floats, float, bool]:
    """Halve a Newton step until it lowers the loss, which a full step may not do: the hindsight loss is not convex."""
    scale = 1.0
    for _ in range(6):
        trial = point - scale * direction
        trial_loss = problem.loss(trial)
        if trial_loss <= loss:
            return trial, trial_loss, True
        scale /= 2
    return point, loss, False


class Problem:
    """The negative log posterior of (theta, b) given everything in the window, in dense arrays with padding."""

    def __init__(
        self,
        hindsight: Sequence[tuple[Floats, Floats, float]],
        bandit: Sequence[tuple[Floats, float, float, int]],
        prior: Floats,
        precision: float,
        rates: tuple[float, float],
    ) -> None:
        n, d = len(hindsight), len(prior)
        widest = max((len(row[1]) for row in hindsight), default=1)
        self.features = np.zeros((n, widest, d))
        self.agreement = np.zeros((n, widest))
        self.padding = np.full((n, widest), _NEVER)
        for i, (features, agreement, _) in enumerate(hindsight):
            self.features[i, : len(features)] = features
            self.agreement[i, : len(features)] = agreement
            self.padding[i, : len(features)] = 0.0
        self.weights = np.array([row[2] for row in hindsight])
        # A chosen candidate nearly always has high features. Unless they are centred, theta would stand for the base rate,
        # not b.
        chosen = np.array([row[0] for row in bandit]).reshape(-1, d)
        centre = chosen.mean(axis=0, keepdims=True) if len(chosen) else 0.0
        self.chosen = np.column_stack([chosen - centre, np.ones(len(chosen))])
        self.rewards = np.array([row[1] for row in bandit])
        self.chosen_weights = np.array([row[2] for row in bandit])
        self.floor, self.range = rates[0], max(rates[1] - rates[0], 0.0)
        self.prior = np.append(prior, 0.0)
        self.precision = np.append(np.full(d, precision), 0.1)
        self._known: tuple[Floats, tuple[Floats, Floats]] | None = None  # the last theta, and its shares

    def _logits(self, theta: Floats) -> Floats:
        return self.features @ theta + self.padding

    def _shares(self, theta: Floats) -> tuple[Floats, Floats]:
        """Compute P(candidate) and P(candidate | it agrees) for each recall, of shape (n, k) each.

        The loss, the gradient and the curvature at one point need the same shares, so they are computed once.
        """
        if self._known is not None and np.array_equal(self._known[0], theta):
            return self._known[1]
        logits = self._logits(theta)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=_NEVER))
        agreeing = powers * self.agreement
        tiny = 1e-300
        shares = (
            powers / (powers.sum(axis=1, keepdims=True) + tiny),
            agreeing / (agreeing.sum(axis=1, keepdims=True) + tiny),
        )
        self._known = (theta.copy(), shares)
        return shares

    def _success(self, fits: Floats) -> Floats:
        return np.clip(self.floor + self.range * fits, 1e-6, 1 - 1e-6)

    def loss(self, point: Floats) -> float:
        """Compute the negative log posterior."""
        shares, _ = self._shares(point[:-1])
        agreed = (shares * self.agreement).sum(axis=1)
        hindsight = -(self.weights * np.log(agreed + 1e-300)).sum()
        success = self._success(sigmoid(self.chosen @ point))
        bandit = -(self.chosen_weights * (self.rewards * np.log(success) + (1 - self.rewards) * np.log1p(-success))).sum()
        return float(hindsight + bandit + 0.5 * (self.precision * (point - self.prior) ** 2).sum())

    def gradient(self, point: Floats) -> Floats:
        """Compute the gradient of the loss."""
        shares, agreed = self._shares(point[:-1])
        pull = ((shares - agreed) * self.weights[:, None])[..., None] * self.features
        gradient = self.precision * (point - self.prior)
        gradient[:-1] += pull.sum(axis=(0, 1))
        fits = sigmoid(self.chosen @ point)
        success = self._success(fits)
        slope = self.range * fits * (1 - fits) / (success * (1 - success))
        return gradient + self.chosen.T @ (self.chosen_weights * slope * (success - self.rewards))

    def curvature(self, point: Floats) -> Floats:
        """Compute the Hessian without the concave part of the hindsight loss, so that it is positive definite."""
        shares, _ = self._shares(point[:-1])
        weighted = (shares * self.weights[:, None])[..., None] * self.features  # (n, k, d)
        means = np.matmul(shares[:, None, :], self.features)[:, 0]  # (n, d)
        curvature = np.diag(self.precision)
        # One product per recall: a single product over all recalls would start BLAS threads (see products.py).
        curvature[:-1, :-1] += np.matmul(weighted.transpose(0, 2, 1), self.features).sum(axis=0)
        curvature[:-1, :-1] -= (means * self.weights[:, None]).T @ means
        fits = sigmoid(self.chosen @ point)
        success = self._success(fits)
        information = (self.range * fits * (1 - fits)) ** 2 / (success * (1 - success))  # Fisher information
        return curvature + (self.chosen * (self.chosen_weights * information)[:, None]).T @ self.chosen
