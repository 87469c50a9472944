"""Logged choices as off-policy evaluation sees them: actions with probabilities."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.off_policy import Logged
from cascade_memory.ports.judged import Judged

_ROUNDING = 1e-5  # of probabilities that were stored in single precision


def is_one_choice(one: Judged) -> bool:
    """Say whether an episode was one choice of at most one case, all of which is still known: one step deep.

    Where any candidate was forgotten it is not, whatever was shown: to leave out only those that showed it would select by what
    was done.
    """
    lost = one.lesson.shown and not len(one.lesson.chosen)  # forgotten before the ledger marked that
    return one.recalls == 1 and one.k == 1 and one.whole and not one.forgot and not lost


def logged(one: Judged, target: NDArray[np.float64]) -> Logged:
    """Return the choice of an episode beside what another policy would have done; ``target`` ends with showing nothing.

    Holding an episode out is one more way of showing nothing, with a probability that is known.
    """
    n = len(one.lesson.slate)
    behaviour = np.append((1.0 - one.holdout) * np.asarray(one.propensity, np.float64), 0.0)
    nothing = 1.0 - float(behaviour.sum())
    behaviour[n] = nothing if nothing > _ROUNDING else 0.0
    baseline = 0.5 if not n and math.isnan(one.baseline) else one.baseline  # with one action any guess cancels out
    return Logged(
        action=int(one.lesson.chosen[0]) if one.lesson.shown else n,
        reward=one.lesson.reward,
        behaviour=behaviour,
        target=target,
        expected=np.append(np.asarray(one.utility, np.float64), baseline),
    )


def with_nothing(propensity: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the probabilities of showing each candidate, and of showing nothing.

    >>> with_nothing(np.array([0.25, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    shows = np.asarray(propensity, np.float64)
    nothing = 1.0 - float(shows.sum())
    return np.append(shows, nothing if nothing > _ROUNDING else 0.0)
