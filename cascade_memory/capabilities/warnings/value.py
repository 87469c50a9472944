"""Decides how often to warn, by comparing episodes in which an agent was warned at random with those in which it was not.

Warning is worth it if the decrease in repeated mistakes and the increase in rewards add up to more than ``MARGIN``. Before
there is any evidence, it probably is: where others measured it, warnings lowered repeated failures by 36 points. The evidence
about all warnings of one kind in a namespace is the prior for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.failure_warning import Tally

MOST = 0.9  # the greatest probability with which a warning is given, so that others stay silent to compare with
SURE = 0.95  # the same once it is beyond doubt that warnings help
FLOOR = 0.01  # the probability left to warnings that do not help
MARGIN = 0.15
# Episodes with a check of a kind of warning, until which nearly all are warned: to stay silent so as to find out more pays only
# if there are many episodes to come.
FIRST = 12
# The probability of being worth it, and the share of the greatest probability with which it is given then: in between, lines.
_WORTHS, _SHARES = (0.0, 0.3, 0.75, 0.98, 1.0), (0.0, 0.0, 0.75, 1.0, 1.0)
_BEYOND_DOUBT, _ENOUGH = 0.995, 100  # that probability, and the episodes behind it, from which the share of silent ones shrinks

_RATES = np.linspace(0.025, 0.975, 20)  # how often a mistake is repeated without a warning
_FEWER = np.round(np.arange(-0.4, 0.951, 0.05), 2)  # by how much less often with one
_BETTER = np.round(np.arange(-0.5, 0.501, 0.05), 2)  # by how much better episodes end with one
_LEAST = 0.02  # no rate is below this, or above one minus this
_FEWER_THAN_BEFORE, _SPREAD, _USELESS = 0.35, 0.15, 0.12  # the prior of fewer repeats: where it lies, and whether it is 0
_ENDS, _SAME_END = 0.15, 0.8  # the prior of better endings: how wide it is, and whether they are the same
_NO_WEIGHT = 1e-6  # what is left of sums by rounding
_NEW = 0.02  # how far a warning may differ from all others of its namespace

Floats = NDArray[np.float64]


def _prior(values: Floats, mean: float, spread: float, none: float) -> Floats:
    """Return a prior probability for each value: ``none`` is added at the value 0, the rest is a normal distribution."""
    weights = np.exp(-0.5 * ((values - mean) / spread) ** 2)
    weights *= (1.0 - none) / weights.sum()
    weights[int(np.argmin(np.abs(values)))] += none
    return weights


_PRIOR_FEWER = _prior(_FEWER, _FEWER_THAN_BEFORE, _SPREAD, _USELESS)
_PRIOR_BETTER = _prior(_BETTER, 0.0, _ENDS, _SAME_END)
_WORTH = np.round(_FEWER[:, None] + _BETTER[None, :], 2) > MARGIN


class WarningValue:
    """Computes the probability with which each warning of a namespace is given, from the results of earlier checks.

    >>> WarningValue({}).chance("w")
    0.9
    >>> useless = Tally(warned=60, warned_repeated=40, warned_reward=20.0, silent=60, silent_repeated=40, silent_reward=20.0)
    >>> WarningValue({"w": useless}).chance("w"), WarningValue({"w": useless}).chance("a new one")
    (0.01, 0.01)
    """

    def __init__(self, tallies: Mapping[str, Tally], kinds: Mapping[str, str] | None = None) -> None:
        self._tallies, self._kinds = tallies, kinds or {}
        self._rows = {name: row for row, name in enumerate(tallies)}
        self._parts = _parts_of(list(tallies.values()))
        self._pools: dict[str, Floats] = {}
        self._counts: dict[str, int] = {}
        self._new: dict[str, float] = {}
        self._known: dict[str, float] = {}

    def chance(self, warning: str, kind: str = "failed") -> float:
        """Return the probability with which a warning of a kind should be given."""
        own = self._tallies.get(warning)
        known, name = (self._new, kind) if own is None or not own.warned + own.silent else (self._known, warning)
        if name not in known:
            known[name] = self._worked_out(warning, own or Tally(), self._pool(kind))
        began = self._episodes(kind) < FIRST and known[name] > FLOOR
        return max(MOST, known[name]) if began else known[name]

    def _episodes(self, kind: str) -> int:
        """Return the number of ended episodes with a check of a warning of a kind, added up over the warnings."""
        if kind not in self._counts:
            whole = (tally for name, tally in self._tallies.items() if self._kinds.get(name, kind) == kind)
            self._counts[kind] = sum(one.warned + one.silent for one in whole)
        return self._counts[kind]

    def _pool(self, kind: str) -> Floats:
        """Return the sum of the rows (see ``_parts_of``) of all warnings whose kind is this one, or is not known any more."""
        if kind not in self._pools:
            rows = [row for name, row in self._rows.items() if self._kinds.get(name, kind) == kind]
            self._pools[kind] = self._parts[rows].sum(axis=0)
        return self._pools[kind]

    def _worked_out(self, warning: str, own: Tally, pool: Floats) -> float:
        if not own.warned + own.silent:  # a new one
            all_of_them = _compared(pool)
            fewer, better = _posterior_of_fewer(all_of_them, _PRIOR_FEWER), _posterior_of_better(all_of_them, _PRIOR_BETTER)
            return self._chance(fewer, better, all_of_them)
        others = _compared(pool - self._parts[self._rows[warning]])
        fewer = _blurred(_posterior_of_fewer(others, _PRIOR_FEWER), _PRIOR_FEWER)
        better = _blurred(_posterior_of_better(others, _PRIOR_BETTER), _PRIOR_BETTER)
        return self._chance(_posterior_of_fewer(own, fewer), _posterior_of_better(own, better), own)

    @staticmethod
    def _chance(fewer: Floats, better: Floats, tally: Tally) -> float:
        worth = float(fewer @ _WORTH @ better)
        most = SURE if worth >= _BEYOND_DOUBT and tally.warned + tally.silent >= _ENOUGH else MOST
        return max(FLOOR, most * float(np.interp(worth, _WORTHS, _SHARES)))


def _posterior_of_fewer(tally: Tally, prior: Floats) -> Floats:
    """Return the distribution of how much less often a mistake is repeated after a warning."""
    if not tally.warned and not tally.silent:
        return prior
    without = _RATES[:, None]
    after = np.clip(without - _FEWER[None, :], _LEAST, 1.0 - _LEAST)
    possible = (without - _FEWER[None, :] > -_LEAST) & (without - _FEWER[None, :] < 1.0 + _LEAST)
    log = (
        tally.silent_repeated * np.log(without)
        + (tally.silent - tally.silent_repeated) * np.log1p(-without)
        + tally.warned_repeated * np.log(after)
        + (tally.warned - tally.warned_repeated) * np.log1p(-after)
    )
    likely = np.where(possible, np.exp(log - log.max()), 0.0).sum(axis=0)
    return _normal(prior * likely, prior)


def _posterior_of_better(tally: Tally, prior: Floats) -> Floats:
    """Return the distribution of how much better episodes end after a warning."""
    if not tally.warned or not tally.silent:
        return prior
    ends = tally.warned_reward / tally.warned, tally.silent_reward / tally.silent
    mean = (tally.warned_reward + tally.silent_reward + 0.5) / (tally.warned + tally.silent + 1.0)
    width = mean * (1.0 - mean)  # of rewards between 0 and 1: at most the variance of a coin with this mean
    variance = max(width, 0.01) * (1.0 / tally.warned + 1.0 / tally.silent)
    likely = np.exp(-0.5 * (ends[0] - ends[1] - _BETTER) ** 2 / variance)
    return _normal(prior * likely, prior)


def _normal(weights: Floats, otherwise: Floats) -> Floats:
    total = weights.sum()
    return weights / total if total > 0.0 else otherwise


def _blurred(pool: Floats, prior: Floats) -> Floats:
    return (1.0 - _NEW) * pool + _NEW * prior


# -- many warnings together ----------------------------------------------------------------------------------------------
# Like is compared with like. Warnings that help are given often and others seldom, and some mistakes are repeated more often
# than others whoever is warned: if all episodes were thrown together, that difference would look like an effect of warning. So
# the warned and the silent episodes of each warning get the same weight (as in the test of Mantel and Haenszel). Warnings of
# which all episodes were warned, or none, count as one warning together: most of them were checked once.


def _parts_of(tallies: Sequence[Tally]) -> Floats:
    """Return a row of numbers for each warning; the sum of several rows is the row of all these warnings together.

    A row has episodes, repeats and rewards with and without the warning, once plain and once weighted. If there are episodes of
    both kinds, the plain numbers are zeros; if not, the weighted ones are.
    """
    counts = np.array([[one.warned, one.silent] for one in tallies], np.float64).reshape(-1, 2)
    repeated = np.array([[one.warned_repeated, one.silent_repeated] for one in tallies], np.float64).reshape(-1, 2)
    rewards = np.array([[one.warned_reward, one.silent_reward] for one in tallies], np.float64).reshape(-1, 2)
    both = counts.min(axis=1, keepdims=True) > 0.0
    alone = np.where(both, 0.0, np.hstack([counts, repeated, rewards]))
    return np.hstack([alone, _weighted(counts, repeated, rewards, both)])


def _weighted(counts: Floats, repeated: Floats, rewards: Floats, both: NDArray[np.bool_]) -> Floats:
    """Return the weighted half of each row that ``_parts_of`` returns; zeros unless ``both`` kinds of episodes exist.

    It has the weight of the warning and, for the episodes with and without the warning: the squared weight divided by the
    number of episodes, and the shares of repeats and of rewards, multiplied by the weight.
    """
    some = np.where(both, counts, 1.0)
    weight = np.where(both, some.prod(axis=1, keepdims=True) / some.sum(axis=1, keepdims=True), 0.0)
    return np.hstack([weight, weight**2 / some, weight * repeated / some, weight * rewards / some])


def _compared(total: Floats) -> Tally:
    """Return the tally of several warnings, as if they were one, from the sum of their rows (see ``_parts_of``).

    Its numbers of episodes are effective ones: as many as the weighted evidence is worth.
    """
    alone, weighted = np.maximum(total[:6], 0.0).round(6), np.maximum(total[6:], 0.0)
    if weighted[0] < _NO_WEIGHT:
        return _tally(alone[:2], alone[2:4], alone[4:])
    if alone[:2].min() >= 1.0:
        weighted = weighted + _weighted(alone[None, :2], alone[None, 2:4], alone[None, 4:], np.array([[True]]))[0]
    worth = np.maximum(np.round(weighted[0] ** 2 / weighted[1:3]), 1.0)
    return _tally(worth, worth * weighted[3:5] / weighted[0], worth * weighted[5:7] / weighted[0])


def _tally(counts: Floats, repeated: Floats, rewards: Floats) -> Tally:
    (warned, silent), (warned_repeated, silent_repeated) = (
        counts.round().tolist(),
        np.minimum(repeated, counts).round().tolist(),
    )
    return Tally(
        warned=int(warned),
        warned_repeated=int(warned_repeated),
        warned_reward=float(rewards[0]),
        silent=int(silent),
        silent_repeated=int(silent_repeated),
        silent_reward=float(rewards[1]),
    )
