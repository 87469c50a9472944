"""Computes how much each case is worth, so that the least useful ones are evicted: how new it was, and how often right."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Floats

_SHARPNESS = 10.0  # of the candidates' vote: e^10 per unit of cosine, the best fixed rule in the learning benchmark

Votes = tuple[NDArray[np.int64], Floats, Floats]  # of one recall: case keys, similarity, agreement with the verified solution


def votes(similarity: Floats) -> Floats:
    """Return each candidate's share of a vote on the right solution; the shares add up to 1, and the nearest have the most.

    >>> votes(np.array([0.9, 0.9])).tolist()
    [0.5, 0.5]
    """
    cosines = np.asarray(similarity, np.float64)
    weights = np.exp(_SHARPNESS * (cosines - cosines.max(initial=-1.0)))
    return weights / max(float(weights.sum()), 1e-12)


def novelty(similarity: Floats, agreement: Floats) -> float:
    """Measure how new a verified solution is: 0 if all its neighbours have the same solution, 1 if none has.

    >>> round(novelty(np.array([0.9, 0.9]), np.array([1.0, 0.0])), 6)
    0.5
    """
    agrees = np.array(agreement, np.float64)
    agrees[np.isnan(agrees)] = 0.0  # unknown
    return float(1.0 - (votes(similarity) * agrees).sum())


def worth(
    keys: NDArray[np.int64], novelties: Floats, shown: Floats, succeeded: Floats, outcomes: Iterable[Votes]
) -> NDArray[np.float64]:
    """Compute the worth of each case (``keys`` ascending): its novelty times the rate at which it was right.

    Two things say how often it was right: its outcomes when it was shown, and its votes in the outcomes in which some
    candidate agreed with the verified solution. A case that was never a candidate counts as right half of the time. A case that
    is redundant, or contradicts its neighbours, gets a low worth.
    """
    right, wrong = np.zeros(len(keys)), np.zeros(len(keys))
    for candidates, similarity, agreement in outcomes:
        agrees = np.nan_to_num(np.asarray(agreement, np.float64))
        if not agrees.any():
            continue  # where no solution agrees, the texts may just be worded differently: this says nothing about the cases
        places = np.searchsorted(keys, candidates)
        known = places < len(keys)
        known[known] = keys[places[known]] == candidates[known]
        share = votes(similarity)[known]
        right[places[known]] += share * agrees[known]
        wrong[places[known]] += share * (1.0 - agrees[known])
    rate = (right + succeeded + 0.5) / (right + wrong + shown + 1.0)
    return np.asarray(novelties, np.float64) * rate
