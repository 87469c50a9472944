"""The regret so far; where known, also the part that no choice of case could avoid and the part that is due to the choice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.report.section import bits, declared
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE, LABELLED

DEFINITION = "Regret counts the tasks that were not solved, as in the paper. Tasks that a human answered do not count."
SPLIT = (
    "Where right solutions recur as labels, regret is also split. A task's loss is the solver's success rate with the right "
    "solution (1 where none is declared), minus 1 if the task was solved. The coverage gap is the sum of the losses of those "
    "tasks for which the memory had no case with the right solution. The retrieval regret is the sum over those for which it "
    "had one and did not show it. SQL, lists and worlds have no split: only an attempt would tell whether a case helps."
)


def split(row: Row) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Compute the coverage gap and the retrieval regret after each task; None if they cannot be known from the row.

    >>> gap, retrieval = split({"n": 3, "success": "001", "covered": "011", "fitting": "001", "declared": {"matched": 0.9}})
    >>> print(gap, retrieval)
    [0.9 0.9 0.9] [0.  0.9 0.9]
    """
    if not _has_labels(row):
        return None
    success, covered, fitting = (bits(row, name) for name in ("success", "covered", "fitting"))
    if success is None or covered is None or fitting is None:
        return None
    loss = float(declared(row).get("matched", 1.0)) - success
    if (asked := bits(row, "asked")) is not None:
        loss = np.where(asked, 0.0, loss)
    return np.cumsum(np.where(covered, 0.0, loss)), np.cumsum(np.where(covered & ~fitting, loss, 0.0))


def total(row: Row) -> NDArray[np.float64] | None:
    """Count, after each task, the unsolved tasks so far that no human answered; None if the row does not record success.

    >>> print(total({"n": 4, "success": "0100", "asked": "1000"}))
    [0. 0. 1. 2.]
    """
    success, asked = bits(row, "success"), bits(row, "asked")
    if success is None:
        return None
    return np.cumsum(~success if asked is None else ~success & ~asked).astype(np.float64)


def _has_labels(row: Row) -> bool:
    """Say whether a case helps if its solution equals the right one.

    The simulated solver is made so. For other solvers, this is taken as true for tasks whose labels recur, and for tasks
    outside the catalogue.
    """
    return row.get("solver", "simulated") == "simulated" or row.get("task") not in CATALOGUE or row["task"] in LABELLED
