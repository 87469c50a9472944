"""Heatmaps: success over the parameters of a tuning, and over the weights of the exploration bonus that were played."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.report.drawing import Chart, Panel, brief
from cascade_memory.evaluation.report.section import Section, options_of, sections, solved
from cascade_memory.looks import BLACK, FRAME, WHITE

_UNTUNED = "the method's own"
BANDIT, BASE = "Neural-LinLogUCB", "NP-CBR"


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
    cells = {(_rate(rate), f"{alpha:g}"): value for (rate, alpha), value in means.items()}
    draw_grid(cells, list(map(_rate, rates)), [f"{alpha:g}" for alpha in alphas], axes)
    axes.set(xlabel="learning rate", ylabel="alpha")


def draw_grid(
    cells: Mapping[tuple[str, str], float], across: Sequence[str], down: Sequence[str], axes: Any, *, signed: bool = False
) -> None:
    """Draw values as coloured fields with their figures, with a frame around the best one; a field without a value is empty.

    A key of ``cells`` is a name of ``across`` and one of ``down``, of which the first is at the bottom.
    """
    table = np.array([[cells.get((x, y), np.nan) for x in across] for y in down])
    edges = [np.arange(size + 1) - 0.5 for size in (len(across), len(down))]
    axes.pcolormesh(*edges, np.ma.masked_invalid(table), cmap="cividis")
    low, high = np.nanmin(table), np.nanmax(table)
    best = max(cells, key=lambda cell: cells[cell])
    for (column, line), value in cells.items():
        x, y = across.index(column), down.index(line)
        bright = high > low and (value - low) / (high - low) > 0.5
        text = f"{value:+.1f}".replace("-", "−") if signed else f"{value:.1f}"
        axes.text(x, y, text, ha="center", va="center", color=BLACK if bright else WHITE)
        if (column, line) == best:
            axes.add_patch(_frame(x, y))
    axes.set_xticks(range(len(across)), [brief(one, 14) for one in across], parse_math=False)
    axes.set_yticks(range(len(down)), [brief(one, 14) for one in down], parse_math=False)
    axes.grid(visible=False)


def explored(section: Section) -> Chart | None:
    """Plot by how much Neural-LinLogUCB is ahead of NP-CBR with each alpha that was played, as in the paper's Fig. 4d.

    None if fewer than two values of alpha were played.
    """
    groups: dict[str, dict[float, dict[str, list[float]]]] = {}
    for (task, _, seed), row in section.rows.items():
        base = section.rows.get((task, BASE, seed))
        options = options_of(row)
        alpha = options.pop("alpha", None)
        if row["method"] != BANDIT or alpha is None or "alpha" in str(row.get("settings")) or not (base and solved(base)):
            continue
        rates = groups.setdefault("as the authors" if row.get("settings") else json.dumps(options), {})
        rates.setdefault(alpha, {}).setdefault(task, []).append(100 * (solved(row) / solved(base) - 1))
    rates = max(groups.values(), key=len, default={})  # those that differ in alpha only
    if len(rates) < 2:
        return None
    alphas = [f"{alpha:g}" for alpha in sorted(rates)]
    cells = {(f"{alpha:g}", task): float(np.mean(its)) for alpha, of in rates.items() for task, its in of.items()}
    tasks = [task for task in reversed(section.tasks) if any((alpha, task) in cells for alpha in alphas)]
    figures = "; ".join(f"{task}, alpha {alpha}: {value:+.1f} %" for (alpha, task), value in cells.items())

    def draw(axes: Any) -> None:
        draw_grid(cells, alphas, tasks, axes, signed=True)
        axes.set_xlabel("alpha")

    panel = Panel(f"{BANDIT}, percent more than {BASE}", f"{figures}.", draw, 0.9 + 0.27 * len(tasks))
    caption = (
        f"By how many percent {BANDIT} solves more than {BASE}, for each weight of the exploration bonus (alpha); mean over "
        "seeds. The best one is framed."
    )
    return Chart("alphas", "How much exploration", caption, [panel])


def _frame(x: int, y: int) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.48, y - 0.44), 0.96, 0.88, fill=False, edgecolor=FRAME, linewidth=2)
