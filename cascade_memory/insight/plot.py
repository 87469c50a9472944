"""Plots success and regret over episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cascade_memory.errors import InvalidInput, MissingExtra


def plot_rewards(rewards: Sequence[tuple[float, bool]], *, window: int) -> Any:
    """Draw the moving average of success with and without a case, and the regret (rewards missed so far); return the figure."""
    if not rewards:
        raise InvalidInput("there is nothing to plot yet: no episode was rewarded")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra('plot() needs the extra "plot": pip install "cascade-memory[plot]"') from error
    values = np.array([value for value, _ in rewards])
    shown = np.array([was for _, was in rewards])
    steps = np.arange(1, len(values) + 1)
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(steps, running_mean(values, window), label="all episodes", color="C0", linewidth=2)
    for mask, label, colour in ((shown, "a case shown", "C2"), (~shown, "no case shown", "C7")):
        if mask.any():
            left.plot(steps[mask], running_mean(values[mask], window), label=label, color=colour, linewidth=1)
    left.set(xlabel="episode", ylabel=f"success, mean of the last {window}", ylim=(-0.02, 1.02), title="Success")
    left.legend(loc="lower right", frameon=False)
    right.plot(steps, np.cumsum(1.0 - values), color="C3", linewidth=2)
    right.set(xlabel="episode", ylabel="rewards missed so far", title="Regret against always succeeding")
    return figure


def running_mean(values: np.ndarray[Any, Any], window: int) -> np.ndarray[Any, Any]:
    """Compute the mean of the last ``window`` values at each step (of fewer at the beginning).

    >>> running_mean(np.array([0.0, 1.0, 1.0]), 2)
    array([0. , 0.5, 1. ])
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - window)
    return (sums[ends] - sums[starts]) / (ends - starts)
