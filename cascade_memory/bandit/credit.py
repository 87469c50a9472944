"""Credit assignment: to which of several chosen cases a reward is attributed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Feedback

Credit: TypeAlias = Callable[[Feedback], NDArray[np.int64]]
CreditName: TypeAlias = Literal["matched", "all", "first"]


def credit_first(outcome: Feedback) -> NDArray[np.int64]:
    """Credit only the first, best-ranked of the chosen positions."""
    return outcome.chosen[:1]


def credit_all(outcome: Feedback) -> NDArray[np.int64]:
    """Credit all chosen positions, as the paper does: a useless case beside a useful one is rewarded as well."""
    return outcome.chosen


def credit_matched(outcome: Feedback) -> NDArray[np.int64]:
    """Credit the chosen positions that agree with the verified solution, or the first one if none is known to agree.

    >>> from cascade_memory.ports.policy import Slate
    >>> slate = Slate(features=np.zeros((3, 0)), similarity=np.zeros(3), groups=np.array([4, 5, 6]))
    >>> outcome = Feedback(key=1, slate=slate, chosen=np.array([2, 0]), context=np.zeros(0), shown=True, reward=1.0,
    ...                    agreement=np.array([1.0, 0.0, 0.0]))
    >>> credit_matched(outcome), credit_first(outcome), credit_all(outcome)
    (array([0]), array([2]), array([2, 0]))
    """
    if outcome.agreement is not None and len(outcome.chosen) > 1:
        agreeing = outcome.chosen[np.nan_to_num(outcome.agreement[outcome.chosen]) >= 0.5]
        if len(agreeing):
            return agreeing
    return outcome.chosen[:1]


CREDITS: Mapping[str, Credit] = {"matched": credit_matched, "all": credit_all, "first": credit_first}
