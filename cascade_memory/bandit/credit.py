"""Which of several chosen cases does a reward speak of?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Feedback

Credit: TypeAlias = Callable[[Feedback], NDArray[np.int64]]
CreditName: TypeAlias = Literal["matched", "all", "first"]


def credit_first(outcome: Feedback) -> NDArray[np.int64]:
    """Return the best of the chosen positions."""
    return outcome.chosen[:1]


def credit_all(outcome: Feedback) -> NDArray[np.int64]:
    """Return all chosen positions, as the paper has it: a useless case beside a useful one is paid for it."""
    return outcome.chosen


def credit_matched(outcome: Feedback) -> NDArray[np.int64]:
    """Return the chosen positions that agree with the verified solution; the first one where nothing tells.

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
