"""The default ranker: what it knows before any reward, and how it is made."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from cascade_memory.bandit.light import COSINE_WEIGHT, LightPolicy
from cascade_memory.encoders.light import ENDS, FEATURES, FORM, LightEncoder
from cascade_memory.learning.ranker import Ranker
from cascade_memory.learning.shared_head import SharedWeights

SAID_WEIGHT = 5.0 * COSINE_WEIGHT  # of the signals "opening", "closing" and "form" before any reward, times how much they say
# The weights of FEATURES before any reward: for a query of one paragraph whose form says nothing, they order by cosine.
_BY_SIGNAL = {"similarity": COSINE_WEIGHT, **dict.fromkeys((*ENDS, FORM), SAID_WEIGHT)}
START = np.array([_BY_SIGNAL.get(name, 0.0) for name in FEATURES])


def light(*, hindsight: bool = True, shared: bool = False, **options: Any) -> Ranker:
    """Make the default ranker: the light encoder, a ranking head with hindsight, and abstaining.

    With ``shared``, one more ranking head learns from all namespaces of a folder. Its weights are the mean of the prior with
    which the head of each namespace begins.
    """
    policy = functools.partial(LightPolicy, len(FEATURES), hindsight=hindsight, start=START, **options)
    weights = SharedWeights(policy) if shared else None
    lean_on = None if weights is None else weights.mean
    return Ranker(
        name="light",
        encoder=LightEncoder,
        policy=lambda: policy(lean_on=lean_on),
        features=FEATURES,
        shared=weights,
    )
