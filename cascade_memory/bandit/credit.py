"""Which of the shown cases does a reward speak of?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Feedback


def credited(outcome: Feedback) -> NDArray[np.int64]:
    """Return the chosen positions that agree with the verified solution; the first one where nothing tells.

    With k cases shown, a useless one beside a useful one must not be paid for it.
    """
    if outcome.agreement is not None and len(outcome.chosen) > 1:
        agreeing = outcome.chosen[np.nan_to_num(outcome.agreement[outcome.chosen]) >= 0.5]
        if len(agreeing):
            return agreeing
    return outcome.chosen[:1]
