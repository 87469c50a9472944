"""Converts logged recalls for off-policy evaluation: actions with their probabilities."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit.off_policy import Logged
from cascade_memory.ports.judged import Judged

_ROUNDING = 1e-5  # possible rounding error of probabilities, which are stored in single precision


def is_one_choice(one: Judged) -> bool:
    """Say whether off-policy evaluation can use an episode: it has one recall of at most one case, and all candidates exist.

    An episode is left out if any of its candidates was forgotten, shown or not. Leaving out only the episodes that showed the
    forgotten case would bias the estimate, since the selection would depend on the action.
    """
    lost = one.lesson.shown and not len(one.lesson.chosen)  # forgotten by a version that did not set ``forgot`` yet
    return one.recalls == 1 and one.k == 1 and one.whole and not one.forgot and not lost


def logged(one: Judged, target: NDArray[np.float64]) -> Logged:
    """Combine the logged choice of an episode with another policy's probabilities ``target``.

    The last entry of ``target`` is the probability of showing nothing.
    Holding an episode out is one more way of showing nothing, and its probability is known.
    """
    n = len(one.lesson.slate)
    behaviour = np.append((1.0 - one.holdout) * np.asarray(one.propensity, np.float64), 0.0)
    nothing = 1.0 - float(behaviour.sum())
    behaviour[n] = nothing if nothing > _ROUNDING else 0.0
    baseline = 0.5 if not n and math.isnan(one.baseline) else one.baseline  # with only one action, any value cancels out
    return Logged(
        action=int(one.lesson.chosen[0]) if one.lesson.shown else n,
        reward=one.lesson.reward,
        behaviour=behaviour,
        target=target,
        expected=np.append(np.asarray(one.utility, np.float64), baseline),
    )


def with_nothing(propensity: NDArray[np.floating]) -> NDArray[np.float64]:
    """Append the probability of showing nothing to the probabilities of showing each candidate.

    >>> with_nothing(np.array([0.25, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    shows = np.asarray(propensity, np.float64)
    nothing = 1.0 - float(shows.sum())
    return np.append(shows, nothing if nothing > _ROUNDING else 0.0)
