"""The picture of the warnings: how far each arm is from the arm without warnings, on each stream."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.report.drawing import Chart, Panel, png
from cascade_memory.evaluation.warned.listening import NEVER
from cascade_memory.evaluation.warned.plan import ARMS, NOTHING
from cascade_memory.evaluation.warned.table import MEASURES, differences
from cascade_memory.looks import INK, looks, need_matplotlib


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
