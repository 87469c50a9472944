"""Which cases would be missed least? What they added when they came, and what they did since."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Floats

_SHARPNESS = 10.0  # of the vote of candidates: e^10 per unit of cosine, the best static rule of the learning benchmark

Votes = tuple[NDArray[np.int64], Floats, Floats]  # of one recall: case keys, similarity, agreement with the verified solution


def votes(similarity: Floats) -> Floats:
    """Return each candidate's share in a vote that the nearest dominate.

    >>> votes(np.array([0.9, 0.9])).tolist()
    [0.5, 0.5]
    """
    weights = np.exp(_SHARPNESS * (np.asarray(similarity, np.float64) - np.max(similarity, initial=-1.0)))
    return weights / max(float(weights.sum()), 1e-12)


def novelty(similarity: Floats, agreement: Floats) -> float:
    """Return how little the neighbours of a verified solution knew of it: 0 when all of them said the same.

    >>> round(novelty(np.array([0.9, 0.9]), np.array([1.0, 0.0])), 6)
    0.5
    """
    return float(1.0 - (votes(similarity) * np.nan_to_num(np.asarray(agreement, np.float64))).sum())


def worth(
    keys: NDArray[np.int64], novelties: Floats, shown: Floats, succeeded: Floats, outcomes: Iterable[Votes]
) -> NDArray[np.float64]:
    """Return what each case (``keys`` ascending) is worth: its novelty times the rate at which it was right.

    Right or wrong is what happened when it was shown, and its vote in every outcome where some candidate agreed with the
    verified solution. A case that nobody asked about counts as right half of the time; a redundant one, or one that contradicts
    its neighbourhood, goes first.
    """
    right, wrong = np.zeros(len(keys)), np.zeros(len(keys))
    for candidates, similarity, agreement in outcomes:
        agrees = np.nan_to_num(np.asarray(agreement, np.float64))
        if not agrees.any():
            continue  # solutions that never agree with any other say nothing about each other
        places = np.searchsorted(keys, candidates)
        known = places < len(keys)
        known[known] = keys[places[known]] == candidates[known]
        share = votes(similarity)[known]
        right[places[known]] += share * agrees[known]
        wrong[places[known]] += share * (1.0 - agrees[known])
    rate = (right + succeeded + 0.5) / (right + wrong + shown + 1.0)
    return np.asarray(novelties, np.float64) * rate
