"""Off-policy evaluation: what another policy would have earned, estimated from logged choices with known probabilities.

Each choice is treated separately: its effect on later choices is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit import intervals
from cascade_memory.bandit.intervals import Interval

Numbers = NDArray[np.float64]

_UNSEEN = 1e-9  # a probability below this is taken as zero


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Logged:
    """One logged choice, its reward, and how likely it was.

    An action is the place of a candidate; the last action means to show nothing. ``behaviour`` has the probabilities of all
    actions when the choice was made, ``target`` those of the other policy. ``expected`` has the success that was predicted for
    each action before the outcome was known, nan where there was no prediction.
    """

    action: int
    reward: float
    behaviour: Numbers
    target: Numbers
    expected: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Estimates of the other policy's mean reward.

    ``uncovered`` is the share of its choices that the logging policy could never have made. If it is above zero, the mean
    reward cannot be estimated, since those choices may earn anything from 0 to 1: only ``bounds`` are given, and the other
    estimates are None. ``effective`` is the effective sample size: the weighted episodes say as much as this many unweighted
    ones.
    """

    episodes: int
    uncovered: float
    effective: float
    bounds: Interval
    inverse: Interval | None = None
    normalised: Interval | None = None
    robust: Interval | None = None


def estimate(log: list[Logged]) -> Estimates:
    """Estimate the mean reward of the target policy.

    * inverse propensity: the mean of ``w r``, where ``w = target / behaviour`` for the action that was taken. It is unbiased if
      behaviour is positive wherever target is, with no assumption about the rewards.
    * self-normalised: ``sum(w r) / sum(w)``. It is slightly biased but varies less. Its error is that of the mean of
      ``w (r - estimate)``, divided by the mean weight (the delta method).
    * doubly robust: the mean predicted success of the target's choices, corrected by ``w (r - expected)`` for the action that
      was taken. The predictions were made before the outcome, so the estimate is unbiased however wrong they are.

    >>> even = np.array([0.5, 0.5])
    >>> log = [Logged(action=i % 2, reward=float(i % 2), behaviour=even, target=np.array([0.0, 1.0]),
    ...               expected=np.array([0.2, 0.8])) for i in range(100)]
    >>> found = estimate(log)
    >>> [round(one.estimate, 3) for one in (found.inverse, found.normalised, found.robust)]
    [1.0, 1.0, 1.0]
    """
    uncovered = float(np.mean([one.target[one.behaviour <= _UNSEEN].sum() for one in log]))
    weights = np.array([one.target[one.action] / max(one.behaviour[one.action], _UNSEEN) for one in log])
    rewards = np.array([one.reward for one in log])
    square = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / square if square else 0.0
    inverse = _mean(weights * rewards, effective)
    bounds = Interval(inverse.estimate, max(0.0, inverse.low), min(1.0, inverse.high + uncovered))
    found = Estimates(episodes=len(log), uncovered=uncovered, effective=effective, bounds=bounds)
    if uncovered > _UNSEEN or not effective or len(log) < 2:
        return found
    return Estimates(
        episodes=len(log),
        uncovered=0.0,
        effective=effective,
        bounds=bounds,
        inverse=inverse,
        normalised=_normalised(weights, rewards, effective),
        robust=_robust(log, weights, rewards, effective),
    )


def _normalised(weights: Numbers, rewards: Numbers, effective: float) -> Interval:
    value = float((weights * rewards).sum() / weights.sum())
    errors = weights * (rewards - value) / weights.mean()
    if _alike(errors):
        return _wilson(value, effective)
    error = _mean(errors, effective)
    return Interval(value, value + error.low - error.estimate, value + error.high - error.estimate)


def _robust(log: list[Logged], weights: Numbers, rewards: Numbers, effective: float) -> Interval | None:
    """Compute the doubly robust estimate; None if a prediction that it needs is missing."""
    wanted = np.array([float(one.target[one.target > 0.0] @ one.expected[one.target > 0.0]) for one in log])
    done = np.array([one.expected[one.action] for one in log])
    correction = np.zeros(len(log))
    counts = weights > 0.0
    correction[counts] = weights[counts] * (rewards[counts] - done[counts])
    values = wanted + correction
    return None if np.isnan(values).any() else _mean(values, effective)


def _mean(values: Numbers, effective: float) -> Interval:
    """Compute a mean with Student's interval: weighted rewards are not zeros and ones, even where they look like it.

    If all values are equal, Student's interval would have no width; then Wilson's is used, with the effective sample size.
    """
    average, n = float(values.mean()), len(values)
    if n < 2 or not effective:
        return Interval(average, -np.inf, np.inf)
    if _alike(values):
        return _wilson(average, effective)
    half = intervals.student(n - 1) * float(values.std(ddof=1)) / float(np.sqrt(n))
    return Interval(average, average - half, average + half)


def _alike(values: Numbers) -> bool:
    return float(np.ptp(values)) <= intervals.ALIKE


def _wilson(value: float, effective: float) -> Interval:
    """Compute Wilson's interval around an estimate that may lie outside [0, 1] because of the weights."""
    low, high = intervals.wilson(min(1.0, max(0.0, value)), effective)
    return Interval(value, min(low, value), max(high, value))
