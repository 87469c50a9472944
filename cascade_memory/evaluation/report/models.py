"""Pictures of several language models together: how much each method solves with each of them, and with how many cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cascade_memory.evaluation.bench.authors import model_name
from cascade_memory.evaluation.bench.names import REINFORCE, has_a_model
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.report import charts, forest
from cascade_memory.evaluation.report.drawing import Chart, Panel, brief
from cascade_memory.evaluation.report.heatmap import BANDIT, BASE, draw_grid, explored
from cascade_memory.evaluation.report.section import Section, options_of, solved
from cascade_memory.looks import legend, looks

_METHODS = ("zero-shot", "similarity", BASE, REINFORCE, BANDIT, "CASCADE")
ALL_MODELS = "All models"  # the heading of their pictures
LOCAL = ", in this process"  # at the end of the name of a solver


def is_of_a_model(section: Section) -> bool:
    """Say whether a language model solved the tasks of a section."""
    return has_a_model(section.solver)


def of_a_model(section: Section) -> list[Chart]:
    """Return the pictures that only tasks of a language model have: the improvement over no memory, and the alphas."""
    return [one for one in (charts.gained(section), explored(section)) if one is not None] if is_of_a_model(section) else []


@dataclass(frozen=True, slots=True)
class _Cell:
    """What one bar or field stands for."""

    model: str
    method: str
    k: int


def together(found: Sequence[Section]) -> list[Chart]:
    """Plot the models of all sections whose tasks were played under the same conditions (Fig. 4a, 4b and E1 of the paper).

    There is a picture for each set of conditions with at least two models, or with at least two numbers of cases.
    """
    groups: dict[tuple[int | None, str], list[Section]] = {}
    for section in found:
        if is_of_a_model(section):
            groups.setdefault((section.limit, section.under), []).append(section)
    return [chart for group in groups.values() for chart in _of_group(group)]


def _of_group(group: Sequence[Section]) -> list[Chart]:
    found: dict[_Cell, dict[str, list[Row]]] = {}
    for section in group:
        for (task, _, _), row in section.rows.items():
            cell = _cell(section, row)
            if cell is not None:
                found.setdefault(cell, {}).setdefault(task, []).append(row)
    rates = {
        cell: {task: [solved(row) for row in _preferred(rows)] for task, rows in its.items()} for cell, its in found.items()
    }
    models = list(dict.fromkeys(cell.model for cell in rates))
    charts = [_by_model(rates, models)] if len(models) > 1 or len({section.solver for section in group}) > 1 else []
    if len({(cell.model, cell.k) for cell in rates if cell.method == BANDIT}) > 1:
        charts.append(_by_cases(rates, models))
    if len(group) > 1:
        charts.append(_by_memory(found, rates))
    return [chart for chart in charts if chart is not None]


def _cell(section: Section, row: Row) -> _Cell | None:
    """Return what a row counts for; None if its method is not drawn."""
    method = str(row["method"]).partition(" (")[0]  # without the models that tell rows of two rerankers apart
    if method not in _METHODS:
        return None
    return _Cell(model_name(section.solver), method, int(options_of(row).get("k", 1)))


def _preferred(rows: Sequence[Row]) -> list[Row]:
    """Of the rows of one method on a task, return those that are played alike.

    A server's model counts more than the same one in this process; and the authors' settings more than the default ones, which
    count more than any others.
    """

    def rank(row: Row) -> tuple[bool, int, str]:
        options = str(row.get("options") or "")
        chosen = 0 if row.get("settings") else 2 if {"alpha", "learning_rate"} & set(options_of(row)) else 1
        return LOCAL in str(row["solver"]), chosen, options if chosen else ""

    best = min(map(rank, rows))
    return [row for row in rows if rank(row) == best]


def _mean(rates: dict[_Cell, dict[str, list[float]]], cell: _Cell, tasks: Sequence[str]) -> float | None:
    its = rates.get(cell, {})
    return float(np.mean([np.mean(its[task]) for task in tasks])) if tasks and all(task in its for task in tasks) else None


def _shared(rates: dict[_Cell, dict[str, list[float]]], cells: Sequence[_Cell]) -> list[str]:
    """Return the tasks that were played in all of these cells, in the order of the first one."""
    return [task for task in rates[cells[0]] if all(task in rates[cell] for cell in cells)] if cells else []


def _by_model(rates: dict[_Cell, dict[str, list[float]]], models: Sequence[str]) -> Chart | None:
    cells = [cell for cell in rates if cell.k == 1]
    tasks = _shared(rates, cells)
    means = {
        method: [_mean(rates, _Cell(model, method, 1), tasks) for model in models]
        for method in _METHODS
        if any(cell.method == method for cell in cells)
    }
    if not tasks:
        return None
    figures = "; ".join(
        f"{method}, {model}: {value:.1f} %"
        for method, values in means.items()
        for model, value in zip(models, values, strict=True)
        if value is not None
    )
    caption = (
        f"Percent solved by each method with each model, mean over seeds and over the tasks that all have played: "
        f"{', '.join(tasks)}. One case is shown. A model in this process counts only where its server played nothing."
    )
    panel = Panel("Success by model", f"{figures}.", partial(_draw_models, means, models))
    return Chart("models", "The models together", caption, [panel], legend(list(means)))


def _draw_models(means: dict[str, list[float | None]], models: Sequence[str], axes: Any) -> None:
    look = looks(list(means))
    for method, values in means.items():
        known = [(place, value) for place, value in enumerate(values) if value is not None]
        style = look[method]
        axes.plot(*zip(*known, strict=True), color=style.colour, linestyle=style.dash, marker=style.mark, linewidth=1.2)
    axes.set_xticks(range(len(models)), [brief(model, 14) for model in models], parse_math=False)
    axes.set_xlim(-0.4, len(models) - 0.6)
    axes.set_ylabel("solved, %")


def _by_memory(found: dict[_Cell, dict[str, list[Row]]], rates: dict[_Cell, dict[str, list[float]]]) -> Chart | None:
    """Plot success against the memory of what learns: a reranker, or the language model itself (Fig. 3c of the paper)."""
    panels: list[Panel] = []
    drawn: dict[str, None] = {}
    for model in dict.fromkeys(cell.model for cell in found):
        cells = [cell for cell in found if cell.model == model and cell.k == 1]
        memory = {cell: [forest.learning_memory(row) for rows in found[cell].values() for row in rows] for cell in cells}
        known = {cell: float(np.mean([*filter(None, its)] or [0.0])) for cell, its in memory.items() if None not in its}
        tasks = _shared(rates, list(known))
        points = {cell.method: (gib, value) for cell, gib in known.items() if (value := _mean(rates, cell, tasks)) is not None}
        if any(gib for gib, _ in points.values()):
            figures = ", ".join(f"{method} {value:.1f} % at {gib:.3g}" for method, (gib, value) in points.items())
            panels.append(Panel(model, f"Success against GiB: {figures}.", partial(_draw_memory, points)))
            drawn.update(dict.fromkeys(points))
    caption = "Percent solved against the peak memory of what learns: the reranker, or the language model that is trained."
    used = {name: look for name, look in looks(_METHODS).items() if name in drawn}
    return Chart("memory", "Memory of what learns", caption, panels, used) if panels else None


def _draw_memory(points: dict[str, tuple[float, float]], axes: Any) -> None:
    look = looks(_METHODS)
    for method, (gib, value) in points.items():
        axes.plot(gib, value, color=look[method].colour, marker=look[method].mark, linestyle="none", markersize=7)
    axes.set(xlabel="GiB", ylabel="solved, %")


def _by_cases(rates: dict[_Cell, dict[str, list[float]]], models: Sequence[str]) -> Chart | None:
    cells = [cell for cell in rates if cell.method == BANDIT]
    tasks = _shared(rates, cells)
    if not tasks:
        return None
    counts = sorted({cell.k for cell in cells})
    down = [f"k = {k}" for k in counts]
    height = 0.9 + 0.3 * len(down)
    solves = {(cell.model, f"k = {cell.k}"): value for cell in cells if (value := _mean(rates, cell, tasks)) is not None}
    panels = [_grid(f"{BANDIT}, percent solved", solves, models, down, height)]
    ahead = {
        (cell.model, f"k = {cell.k}"): solves[cell.model, f"k = {cell.k}"] - base
        for cell in cells
        if (base := _mean(rates, _Cell(cell.model, BASE, cell.k), tasks)) is not None
    }
    if ahead:
        panels.append(_grid(f"points more than {BASE}", ahead, models, down, height, signed=True))
    caption = (
        f"{BANDIT} by model and by the number of cases (k), mean over seeds and over the tasks that all have played: "
        f"{', '.join(tasks)}. The best one is framed."
    )
    return Chart("cases", "Models and numbers of cases", caption, panels)


def _grid(
    title: str,
    cells: dict[tuple[str, str], float],
    models: Sequence[str],
    down: Sequence[str],
    height: float,
    *,
    signed: bool = False,
) -> Panel:
    figures = "; ".join(f"{model}, {k}: {value:.1f}" for (model, k), value in cells.items())
    return Panel(title, f"{title}: {figures}.", partial(draw_grid, cells, models, down, signed=signed), height)
