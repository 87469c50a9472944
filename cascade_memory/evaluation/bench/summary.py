"""Summarises rows: means over seeds, and paired differences with their confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.evaluation.bench.rows import Row

STATIC = ("NP-CBR", "similarity")  # show a case by a fixed order: the pretrained reranker's, or the cosine

# Two-sided 95 % points of Student's t for the first n degrees of freedom; beyond these, 1.96 + 2.6 / n is at most 0.005 off.
_T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228}


def interval(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Compute the mean and half the width of its 95 % interval (Student's t); for a single value, the width is nan.

    >>> interval([1.0, 3.0])
    (2.0, 12.706)
    """
    array = np.asarray(values, np.float64)
    if len(array) < 2:
        return float(array.mean()), float("nan")
    freedom = len(array) - 1
    point = _T.get(freedom, 1.96 + 2.6 / freedom)
    return float(array.mean()), round(float(point * array.std(ddof=1) / np.sqrt(len(array))), 12)


def base_of(rows: Sequence[Row]) -> str:
    """Return the method with which the others are compared: the paper's NP-CBR if it was played, otherwise "similarity".

    >>> base_of([{"method": "CASCADE"}])
    'similarity'
    """
    return next((base for base in STATIC if any(row["method"] == base for row in rows)), STATIC[-1])


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Make a line per method: its success on each task in percent, and its mean difference to the method ``base_of(rows)``.

    The difference is the mean over the tasks.
    """
    base = base_of(rows)
    tasks, methods = (list(dict.fromkeys(row[name] for row in rows)) for name in ("task", "method"))
    seeds = sorted({row["seed"] for row in rows})
    rates = {(row["task"], row["method"], row["seed"]): 100 * row["rate"] for row in rows}
    lines: list[list[str]] = []
    for method in methods:
        cells = [_cell([rates[key] for seed in seeds if (key := (task, method, seed)) in rates]) for task in tasks]
        paired = [
            np.mean([rates[task, method, seed] - rates[task, base, seed] for task in tasks])
            for seed in seeds
            if all((task, one, seed) in rates for task in tasks for one in (method, base))
        ]
        lines.append([method, *cells, "" if method == base or not paired else _gain(np.array(paired))])
    return lines


def _gain(paired: NDArray[np.float64]) -> str:
    mean, half = interval(paired)
    return f"{mean:+.1f}" if np.isnan(half) else f"{mean:+.1f} ± {half:.1f}"


def _cell(values: list[float]) -> str:
    return f"{np.mean(values):.1f}" if values else ""
