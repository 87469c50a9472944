"""Heatmaps of success over the parameters that were tried in a tuning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.report.drawing import Chart, Panel
from cascade_memory.evaluation.report.section import Section, sections, solved
from cascade_memory.looks import BLACK, FRAME, WHITE

_UNTUNED = "the method's own"


def tried(rows: Sequence[Row]) -> list[tuple[Section, Chart]]:
    """Plot success over the exploration coefficient and the learning rate, for each solver in the rows of a tuning."""
    if not rows:
        raise InvalidInput("there are no rows of tuning: cascade-memory bench tune writes them")
    return [(section, _chart(section)) for section in sections(rows)]


def _chart(section: Section) -> Chart:
    panels: list[Panel] = []
    grids: dict[tuple[str, str], dict[tuple[float | None, float], list[float]]] = {}
    for (task, _, _), row in section.rows.items():
        parameters = _parameters(row)
        cell = (parameters.get("learning_rate"), parameters["alpha"])
        grids.setdefault((task, row["method"]), {}).setdefault(cell, []).append(solved(row))
    for (task, method), cells in grids.items():
        means = {cell: float(np.mean(values)) for cell, values in cells.items()}
        figures = "; ".join(f"{_rate(rate)}, alpha {alpha:g}: {value:.1f} %" for (rate, alpha), value in means.items())
        height = 0.9 + 0.27 * len({alpha for _, alpha in means})
        panels.append(Panel(f"{task}, {method}", f"{task}, {method}: {figures}.", partial(_draw, means), height))
    return Chart(
        "tuning",
        "Parameters that were tried",
        "Percent solved, mean over seeds. As in the paper, the learning rate is chosen first, without exploration; then "
        "alpha is chosen with that learning rate. Fields that were not played are empty. The best one is framed.",
        panels,
    )


def _parameters(row: Row) -> dict[str, float]:
    try:
        parameters = json.loads(row.get("options") or "{}")
        return {name: float(parameters[name]) for name in ("alpha", "learning_rate") if name == "alpha" or name in parameters}
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(f"a row of {row['method']!r} has no alpha: these are not rows that bench tune wrote") from error


def _rate(rate: float | None) -> str:
    return _UNTUNED if rate is None else f"{rate:g}"


def _draw(means: dict[tuple[float | None, float], float], axes: Any) -> None:
    rates = sorted({rate for rate, _ in means}, key=lambda rate: -1.0 if rate is None else rate)
    alphas = sorted({alpha for _, alpha in means})
    table = np.array([[means.get((rate, alpha), np.nan) for rate in rates] for alpha in alphas])
    edges = [np.arange(size + 1) - 0.5 for size in (len(rates), len(alphas))]
    axes.pcolormesh(*edges, np.ma.masked_invalid(table), cmap="cividis")
    low, high = np.nanmin(table), np.nanmax(table)
    best = max(means, key=lambda cell: means[cell])
    for (rate, alpha), value in means.items():
        x, y = rates.index(rate), alphas.index(alpha)
        bright = high > low and (value - low) / (high - low) > 0.5
        axes.text(x, y, f"{value:.1f}", ha="center", va="center", color=BLACK if bright else WHITE)
        if (rate, alpha) == best:
            axes.add_patch(_frame(x, y))
    axes.set_xticks(range(len(rates)), [_rate(rate) for rate in rates])
    axes.set_yticks(range(len(alphas)), [f"{alpha:g}" for alpha in alphas])
    axes.grid(visible=False)
    axes.set(xlabel="learning rate", ylabel="alpha")


def _frame(x: int, y: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.48, y - 0.44), 0.96, 0.88, fill=False, edgecolor=FRAME, linewidth=2)
