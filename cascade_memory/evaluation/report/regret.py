"""The regret so far, split into a part that no choice of case could avoid and a part due to the choice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.report.section import bits, declared

DEFINITION = (
    "A task's loss is the solver's success rate with the right solution (1 where none is declared), minus 1 if the task was "
    "solved. The coverage gap is the sum of the losses of those tasks for which the memory had no case with the right "
    "solution. The retrieval regret is the sum over those for which it had one and did not show it. Tasks that a human "
    "answered have no loss."
)


def split(row: Row) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Compute the coverage gap and the retrieval regret after each task; None if the row does not say what was covered.

    >>> gap, retrieval = split({"n": 3, "success": "001", "covered": "011", "fitting": "001", "declared": {"matched": 0.9}})
    >>> print(gap, retrieval)
    [0.9 0.9 0.9] [0.  0.9 0.9]
    """
    success, covered, fitting = (bits(row, name) for name in ("success", "covered", "fitting"))
    if success is None or covered is None or fitting is None:
        return None
    loss = float(declared(row).get("matched", 1.0)) - success
    if (asked := bits(row, "asked")) is not None:
        loss = np.where(asked, 0.0, loss)
    return np.cumsum(np.where(covered, 0.0, loss)), np.cumsum(np.where(covered & ~fitting, loss, 0.0))
