"""The table of the warnings: how often a known failure is repeated, what is solved, and with how many steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.warned.plan import ARMS, NOTHING

HEAD = (
    "failures",
    "that repeat a known one, %",
    "against none",
    "tasks with a known mistake, %",
    "against none",
    "success, %",
    "against none",
    "steps",
    "against none",
)
MEASURES = {"repeated": "failures that repeat a known one, %", "success": "tasks solved, %", "steps": "steps of a task"}


def measured(row: Mapping[str, Any]) -> dict[str, float]:
    """Compute the measures by which runs are compared: shares in percent, and the mean number of steps.

    ``repeated`` is the share of the failures whose blamed step was a known mistake, ``again`` the share of all tasks in which a
    known mistake was made at any step, and ``spoiled`` the share of failures among the tasks that the agent solves alone.

    >>> row = {"success": "1100", "repeated": "0001", "again": "0101", "alone": "1010", "steps": [1, 2, 3, 4]}
    >>> {name: round(value) for name, value in measured(row).items()}
    {'repeated': 50, 'again': 50, 'success': 50, 'steps': 2, 'spoiled': 50}
    """
    columns = ("success", "repeated", "again", "alone")
    success, repeated, again, alone = (np.array([one == "1" for one in str(row[name])]) for name in columns)
    return {
        "repeated": 100.0 * float(repeated.sum()) / max(1, int((~success).sum())),
        "again": 100.0 * float(again.mean()),
        "success": 100.0 * float(success.mean()),
        "steps": float(np.mean(row["steps"])),
        "spoiled": 100.0 * float((alone & ~success).sum()) / max(1, int(alone.sum())),
    }


def differences(rows: Sequence[Row], arm: str, measure: str) -> list[float]:
    """Compute by how much an arm is above the arm without warnings, for each order of one stream that both arms have played."""
    found = {(row["method"], row["seed"]): measured(row)[measure] for row in rows if row["method"] in (arm, NOTHING)}
    seeds = sorted({seed for _, seed in found})
    return [found[arm, seed] - found[NOTHING, seed] for seed in seeds if (arm, seed) in found and (NOTHING, seed) in found]


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Make the lines of the table for the rows of one stream: a line for each arm."""
    lines: list[list[str]] = []
    for arm in (name for name in ARMS if any(row["method"] == name for row in rows)):
        found = [measured(row) for row in rows if row["method"] == arm]
        means = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        cells = [[f"{means[name]:.1f}", _against(rows, arm, name)] for name in ("repeated", "again", "success", "steps")]
        lines.append([arm, *(cell for pair in cells for cell in pair)])
    return lines


def _against(rows: Sequence[Row], arm: str, measure: str) -> str:
    paired = differences(rows, arm, measure)
    if arm == NOTHING or not paired:
        return "–"
    mean, half = interval(paired)
    return f"{mean:+.1f}" if np.isnan(half) else f"{mean:+.1f} ± {half:.1f}"
