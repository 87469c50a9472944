"""The table and the picture of the warnings: how often a known failure is repeated, what is solved, and with how many steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.report.drawing import Chart, Panel, png
from cascade_memory.evaluation.warned.listening import NEVER
from cascade_memory.evaluation.warned.plan import ARMS, NOTHING
from cascade_memory.looks import INK, looks, need_matplotlib

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


def draw(rows: Sequence[Row], target: Path) -> None:
    """Draw a panel for each measure into a PNG file. Needs matplotlib."""
    need_matplotlib("the picture of the warnings")
    streams = list(dict.fromkeys(map(_stream, rows)))
    arms = [arm for arm in ARMS if arm != NOTHING and any(row["method"] == arm for row in rows)]
    height = 0.9 + len(streams) * (0.2 + 0.12 * len(arms))
    panels = [
        Panel(title, f"Difference to no warnings: {title}.", partial(_draw, rows, streams, arms, measure), height)
        for measure, title in MEASURES.items()
    ]
    chart = Chart("warnings", "More or fewer than without warnings", "", panels, looks(arms))
    png(chart, "simulated agents, 95 % intervals", target)


def _draw(rows: Sequence[Row], streams: Sequence[str], arms: Sequence[str], measure: str, axes: Any) -> None:
    look, reach = looks(arms), 0.0
    for place, stream in enumerate(streams):
        its = [row for row in rows if _stream(row) == stream]
        for i, arm in enumerate(arms):
            paired = differences(its, arm, measure)
            if not paired:
                continue
            mean, half = interval(paired)
            y = place + 0.36 * (2 * (i + 0.5) / len(arms) - 1)
            style = look[arm]
            axes.errorbar(
                mean, y, xerr=None if np.isnan(half) else half, color=style.colour, fmt=style.mark, markersize=4, linewidth=1.2
            )
            reach = max(reach, abs(mean) + (0.0 if np.isnan(half) else half))
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_xlim(-1.05 * reach - 0.1, 1.05 * reach + 0.1)
    axes.set_ylim(len(streams) - 0.5, -0.5)
    axes.set_yticks(range(len(streams)), streams, parse_math=False)
    axes.grid(visible=False, axis="y")
    for edge in range(1, len(streams)):
        axes.axhline(edge - 0.5, color=INK, alpha=0.15, linewidth=0.6)


def _stream(row: Row) -> str:
    """Name a stream; add what its agent does at the end of its plan, unless it gives up there."""
    return f"{row['task']}, {row['heeds']}" if row.get("heeds", NEVER) != NEVER else str(row["task"])


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
