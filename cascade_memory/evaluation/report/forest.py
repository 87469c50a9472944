"""Forest plots of paired differences with their intervals, and plots of success against cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cascade_memory.evaluation.bench.names import REINFORCE
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.report.differences import comparable, note, on_average, on_task
from cascade_memory.evaluation.report.drawing import Chart, Panel, brief
from cascade_memory.evaluation.report.section import Section, solved
from cascade_memory.looks import INK, legend, looks, strong

AVERAGE = "average"


def forest(section: Section) -> Chart | None:
    """Plot by how much the coloured methods are ahead of each base method, for each task and on average."""
    panels: list[Panel] = []
    for base in section.bases:
        methods = [name for name in strong(section.methods) if name != base and comparable(section, name, base)]
        if base in section.methods and methods:
            height = 0.8 + (len(section.tasks) + 1) * (0.18 + 0.11 * len(methods))
            about = f"Points ahead of {base}; the table below has the figures."
            panels.append(Panel(f"ahead of {base}", about, partial(_draw_forest, section, methods, base), height))
    caption = (
        "Points by which a method is ahead of another one, paired by seed, with 95 % intervals (Student's t). An interval that "
        "leaves the picture is cut; the tables have it whole." + note(section)
    )
    return Chart("differences", "Paired differences", caption, panels, legend(section.methods)) if panels else None


def _draw_forest(section: Section, methods: list[str], base: str, axes: Any) -> None:
    look, lines = looks(section.methods), [*section.tasks, AVERAGE]
    reach = 0.0
    for place, task in enumerate(lines):
        for i, method in enumerate(methods):
            found = (
                on_average(section, comparable(section, method, base), method, base)
                if task == AVERAGE and place == len(lines) - 1
                else on_task(section, task, method, base)
            )
            if found is None:
                continue
            y = place + 0.36 * (2 * (i + 0.5) / len(methods) - 1)
            style = look[method]
            half = None if np.isnan(found.half) else found.half
            axes.errorbar(
                found.mean, y, xerr=half, color=style.colour, fmt=style.mark, markersize=4, linewidth=1.2, clip_on=True
            )
            reach = max(reach, abs(found.mean))
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_xlim(-1.6 * reach - 2, 1.6 * reach + 2)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks(range(len(lines)), [brief(task) for task in lines], parse_math=False)
    axes.grid(visible=False, axis="y")
    for edge in range(1, len(lines)):
        axes.axhline(edge - 0.5, color=INK, alpha=0.15, linewidth=0.6)
    axes.set_xlabel(f"points more than {base}", parse_math=False)


def costs(section: Section) -> Chart | None:
    """Plot the mean success over tasks against time and against the number of stored cases."""
    panels: list[Panel] = []
    costing: tuple[tuple[Callable[[Row], Any], str, bool], ...] = (
        (_column("ms_per_task"), "ms per task", True),
        (_column("cases"), "cases kept", False),
        (_memory(section), "GiB of memory of what learns", False),
    )
    for cost, title, log in costing:
        points = _points(section, cost)
        if points:
            figures = ", ".join(f"{method} {y:.1f} % at {x:.3g}" for method, (x, y) in points.items())
            panels.append(
                Panel(title, f"Success against {title}: {figures}.", partial(_draw_points, section, points, title, log))
            )
    caption = "Percent solved, as the mean over tasks and seeds. Time is the median of a task, without embedding its query."
    caption += note(section)
    if not any(row.get("cases") for row in section.rows.values()):
        caption += " These rows do not say how many cases were stored."
    return Chart("costs", "What it costs", caption, panels, legend(section.methods)) if panels else None


def _column(name: str) -> Callable[[Row], Any]:
    return lambda row: row.get(name)


def _memory(section: Section) -> Callable[[Row], Any]:
    """Return the measure ``learning_memory``; it is None for each row if no row of the section measured any memory."""
    measured = any(learning_memory(row) for row in section.rows.values())
    return lambda row: learning_memory(row) if measured else None


def learning_memory(row: Row) -> float | None:
    """Return the peak memory, in GiB, of what a method trains or ranks with: a reranker, or the language model (Fig. 3c).

    It is 0 for a method that has neither, and None if the row does not say it.

    >>> learning_memory({"method": "ICRL"}), learning_memory({"method": "NP-CBR", "models": '{"ranker": "a@1"}'})
    (0.0, None)
    """
    trains = row["method"] == REINFORCE
    if not trains and '"ranker"' not in str(row.get("models")):
        return 0.0
    found = row.get("peak_memory_gib" if trains else "ranker_memory_gib")
    return float(found) if isinstance(found, int | float) else None


def _points(section: Section, cost: Callable[[Row], Any]) -> dict[str, tuple[float, float]]:
    """Compute (cost, success) of each method that records this cost, over the tasks that all these methods have played."""
    costing: dict[str, dict[str, float]] = {}
    for method in section.methods:
        means = {
            task: [one for row in section.of(task, method) if isinstance(one := cost(row), (int, float))]
            for task in section.tasks
        }
        costing[method] = {task: float(np.mean(values)) for task, values in means.items() if values}
    costing = {method: tasks for method, tasks in costing.items() if tasks}
    shared = [task for task in section.tasks if all(task in tasks for tasks in costing.values())]
    if not shared:
        return {}
    return {
        method: (
            float(np.mean([tasks[task] for task in shared])),
            float(np.mean([np.mean(list(section.by_seed(task, method, solved).values())) for task in shared])),
        )
        for method, tasks in costing.items()
    }


def _draw_points(section: Section, points: dict[str, tuple[float, float]], label: str, log: bool, axes: Any) -> None:
    look = looks(section.methods)
    for method, (x, y) in points.items():
        axes.plot(
            x,
            y,
            color=look[method].colour,
            marker=look[method].mark,
            linestyle="none",
            markersize=7 if look[method].strong else 5,
        )
    if log:
        axes.set_xscale("log")
    axes.set(xlabel=label, ylabel="solved, %")
