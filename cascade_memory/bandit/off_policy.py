"""What another policy would have earned, from what one earned whose choices had known probabilities. One step deep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit import intervals
from cascade_memory.bandit.intervals import Interval

Numbers = NDArray[np.float64]

_UNSEEN = 1e-9  # a probability below this is none


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Logged:
    """One choice, its reward, and how likely it was; an action is a candidate's place, the last one is showing nothing.

    ``behaviour`` are the probabilities of all actions when the choice was made, ``target`` those of the other policy;
    ``expected`` is the success that was predicted of each action before the outcome was known, nan where nothing was.
    """

    action: int
    reward: float
    behaviour: Numbers
    target: Numbers
    expected: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What can be said of the other policy's mean reward.

    ``uncovered`` is the share of its choices that could not have been made at all. Where there are any the value is not
    identified: it lies within ``bounds`` (what those choices earned may have been all or nothing), and the others are None.
    ``effective`` is how many episodes the weighted ones are worth.
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

    * inverse propensity: the mean of ``w r``, ``w = target / behaviour`` of what was done. Its expectation is the target's
      value wherever behaviour is positive, whatever the world is like.
    * self-normalised: ``sum(w r) / sum(w)``. Slightly biased, and steadier; its error is that of the mean of
      ``w (r - estimate)`` over the mean weight (the delta method).
    * doubly robust: the mean of what was expected of the target's choice, corrected by ``w (r - expected)`` where it was made.
      The expectations were made before the outcome, so the correction is unbiased however wrong they are.

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
    """Return None where something that counts was never predicted."""
    wanted = np.array([float(one.target[one.target > 0.0] @ one.expected[one.target > 0.0]) for one in log])
    done = np.array([one.expected[one.action] for one in log])
    correction = np.zeros(len(log))
    counts = weights > 0.0
    correction[counts] = weights[counts] * (rewards[counts] - done[counts])
    values = wanted + correction
    return None if np.isnan(values).any() else _mean(values, effective)


def _mean(values: Numbers, effective: float) -> Interval:
    """Return a mean with Student's interval: weighted rewards are no zeros and ones, even where they look like it.

    Where all are alike they show no spread, and it is Wilson's, of as many numbers as the weighted ones are worth.
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
    """Return Wilson's interval around an estimate that weights may have carried out of [0, 1]."""
    low, high = intervals.wilson(min(1.0, max(0.0, value)), effective)
    return Interval(value, min(low, value), max(high, value))
