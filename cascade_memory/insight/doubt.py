"""How much a person's verdict on an episode would teach."""

from __future__ import annotations

import math

import numpy as np

from cascade_memory.domain.digests import digest
from cascade_memory.domain.records import Doubt

_NEAREST = 8  # candidates whose solutions are compared


def informative(doubt: Doubt) -> float:
    """Return how much a verdict would teach, from 0 to 2.

    The value is the sum of two parts. The first says how near the predicted success of what was done is to 1/2. The second says
    how much the solutions of the nearest eight candidates disagree: the probability that two of them, drawn at random, do so.

    >>> sure = Doubt(episode_id="a", shown=True, predicted=1.0, groups=np.array([7, 7]))
    >>> unsure = Doubt(episode_id="b", shown=True, predicted=0.5, groups=np.array([7, 8]))
    >>> informative(sure), informative(unsure)
    (0.0, 1.5)
    """
    predicted = min(max(doubt.predicted, 0.0), 1.0) if math.isfinite(doubt.predicted) else 0.5
    shares = np.unique(doubt.groups[:_NEAREST], return_counts=True)[1] / max(1, len(doubt.groups[:_NEAREST]))
    disagreement = 1.0 - float(shares @ shares) if len(shares) else 0.0
    return 1.0 - abs(2.0 * predicted - 1.0) + disagreement


def is_asked_about(episode_id: str, rate: float) -> bool:
    """Decide whether people are asked about an episode: its id decides, so that all processes agree.

    >>> [is_asked_about("an episode", rate) for rate in (0.0, 1.0)]
    [False, True]
    """
    return int(digest(f"asked\x00{episode_id}")[:12], 16) / 16**12 < rate
