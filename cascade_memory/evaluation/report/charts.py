"""The charts of success and regret in a section."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.report import regret
from cascade_memory.evaluation.report.differences import ENOUGH, note
from cascade_memory.evaluation.report.drawing import Chart, Panel, brief
from cascade_memory.evaluation.report.section import Section, bits
from cascade_memory.evaluation.report.words import NO_MEMORY
from cascade_memory.looks import INK, OTHER, End, EndNames, legend, looks, strong

_BESIDE = 0.014  # between two bars, as a part of the width
_NAMES = 9.0  # points
_POINTS = 160  # points per curve; more would not be visible
Curve = Callable[[Row], "NDArray[np.float64] | None"]  # a value after each task of a row


def success(section: Section) -> Chart:
    """Plot the success rate so far over the number of tasks."""
    return Chart(
        "success",
        "Success over the stream",
        "Percent solved of the tasks so far. The curves begin after the first tasks, where the percentage jumps. "
        + _bars(section)
        + note(section),
        [
            Panel(task, _ends_in_words(section, task, success_so_far, "percent solved"), partial(_draw_success, section, task))
            for task in section.tasks
        ],
    )


def gained(section: Section) -> Chart | None:
    """Plot by how much each method is ahead of no memory over the stream, as in the paper; None if that was not played."""
    tasks = [task for task in section.tasks if section.of(task, NO_MEMORY)]
    memories = replace(section, rows={key: row for key, row in section.rows.items() if key[1] != NO_MEMORY})
    if not tasks or not memories.rows:
        return None
    curve = partial(_ahead_so_far, section)
    about = "points more than no memory"
    panels = [
        Panel(task, _ends_in_words(memories, task, curve, about), partial(_draw_gained, memories, task, curve))
        for task in tasks
        if memories.of_task(task)
    ]
    caption = "Percentage points solved more than by no memory, of the tasks so far, paired by seed. " + _bars(memories)
    return Chart("gained", "Improvement over no memory", caption + note(section), panels, legend(memories.methods))


def _ahead_so_far(section: Section, row: Row) -> NDArray[np.float64] | None:
    """Compute how far a run is ahead of the run without memory with the same seed, up to each task."""
    base = section.rows.get((row["task"], NO_MEMORY, row["seed"]))
    asked = {"asked": row["asked"]} if row.get("asked") else {}  # what a human answered counts for neither
    ours, theirs = success_so_far(row), None if base is None else success_so_far({**base, **asked})
    return ours - theirs if ours is not None and theirs is not None and len(ours) == len(theirs) else None


def _draw_gained(section: Section, task: str, curve: Curve, axes: Any) -> EndNames:
    _, names = _draw_curves(axes, section, task, curve, skip=0.08)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set(xlabel="tasks", ylabel="points more so far")
    return names


def steps(section: Section) -> Chart | None:
    """Plot the mean number of tool calls or actions so far, for the tasks whose rows record this number."""
    known = [task for task in section.tasks if any(steps_so_far(row) is not None for row in section.of_task(task))]
    panels = [
        Panel(
            task,
            _ends_in_words(section, task, steps_so_far, "tool calls or actions per task"),
            partial(_draw_steps, section, task),
        )
        for task in known
    ]
    caption = "Tool calls or actions per task, the mean of the tasks so far. " + _bars(section)
    return Chart("steps", "Steps over the stream", caption, panels) if panels else None


def missed(section: Section) -> Chart | None:
    """Plot the regret of each task and, where they are known, its two parts (see ``regret.split``)."""
    parts = (("coverage gap", _gap), ("retrieval regret", _retrieval))
    panels: list[Panel] = []
    about_parts = ""
    for task in section.tasks:
        if not any(regret.total(row) is not None for row in section.of_task(task)):
            continue
        known = any(regret.split(row) is not None for row in section.of_task(task))
        about_parts = f" {regret.SPLIT}" if known else about_parts
        for name, curve in (("regret", regret.total), *(parts if known else ())):
            about = _ends_in_words(section, task, curve, name)
            panels.append(Panel(f"{task}: {name}", about, partial(_draw_missed, section, task, curve)))
    caption = f"Summed over the tasks so far. {regret.DEFINITION}{about_parts} {_bars(section)}"
    return Chart("regret", "What was missed", caption, panels) if panels else None


def success_so_far(row: Row) -> NDArray[np.float64] | None:
    """Compute the success rate up to each task of a run, without the tasks that a human answered."""
    values, asked = bits(row, "success"), bits(row, "asked")
    if values is None:
        return None
    attempted = np.ones(len(values), np.bool_) if asked is None else ~asked
    return 100 * np.cumsum(values & attempted) / np.maximum(np.cumsum(attempted), 1)


def steps_so_far(row: Row) -> NDArray[np.float64] | None:
    """Compute the mean number of steps up to each task of a run; None if the row does not record the steps.

    >>> steps_so_far({"n": 2, "steps": [1, 3]}), steps_so_far({"n": 2, "steps": [1, "x"]})
    (array([1., 2.]), None)
    """
    given = row.get("steps")
    if not isinstance(given, list) or len(given) != row["n"] or not all(type(one) is int and 0 <= one < 10**6 for one in given):
        return None
    return np.cumsum(np.array(given, np.float64)) / np.arange(1, len(given) + 1)


def _gap(row: Row) -> NDArray[np.float64] | None:
    parts = regret.split(row)
    return None if parts is None else parts[0]


def _retrieval(row: Row) -> NDArray[np.float64] | None:
    parts = regret.split(row)
    return None if parts is None else parts[1]


def _bars(section: Section) -> str:
    """Explain the bars and the grey lines of a chart, for its caption."""
    grey = " Thin grey lines: the other methods, see the table." if OTHER in looks(section.methods).values() else ""
    cut = "cut where they leave the picture"
    return f"Bars at the right: 95 % intervals at the end, over three seeds or more (Student's t), {cut}.{grey}"


def _draw_success(section: Section, task: str, axes: Any) -> EndNames:
    shown, names = _draw_curves(axes, section, task, success_so_far, skip=0.08)
    if shown:
        axes.set_ylim(max(0.0, min(map(np.min, shown)) - 4), min(100.0, max(map(np.max, shown)) + 4))
    axes.set(xlabel="tasks", ylabel="solved so far, %")
    return names


def _draw_steps(section: Section, task: str, axes: Any) -> EndNames:
    _, names = _draw_curves(axes, section, task, steps_so_far, skip=0.08)
    axes.set(xlabel="tasks", ylabel="steps per task so far")
    return names


def _draw_missed(section: Section, task: str, curve: Curve, axes: Any) -> EndNames:
    shown, names = _draw_curves(axes, section, task, curve)
    same = (_gap, _retrieval) if curve is not regret.total else (curve,)
    both = [np.max(mean) for one in same for _, (_, mean, _) in _curves(section, task, one).items()]
    if shown:
        axes.set_ylim(min(0.0, *map(np.min, shown)), 1.05 * max(1.0, *both))  # the same for both parts of a task
    axes.set(xlabel="tasks", ylabel="missed so far")
    return names


def _draw_curves(
    axes: Any, section: Section, task: str, curve: Curve, skip: float = 0.0
) -> tuple[list[NDArray[np.float64]], EndNames]:
    """Plot a line per method, the grey ones in the background; return the lines, and the names of the coloured ones.

    Bands around the lines would hide each other. So each interval is a bar to the right of its line's end, beside other bars.
    """
    look = looks(section.methods)
    drawn: list[NDArray[np.float64]] = []
    ends: list[End] = []
    for method, (steps, mean, half) in sorted(_curves(section, task, curve, skip).items(), key=lambda one: look[one[0]].strong):
        style = look[method]
        width = 1.8 if style.strong else 0.7
        axes.plot(steps, mean, color=style.colour, linestyle=style.dash, linewidth=width)
        if style.strong:
            ends.append(End(_short(method), float(mean[-1]), style.colour))
            if half is not None:
                place = steps[-1] + (0.6 + len(ends)) * _BESIDE * max(1, steps[-1] - steps[0])
                axes.errorbar(place, mean[-1], yerr=half[-1], color=style.colour, linewidth=1.6, capsize=0)
        drawn.append(mean)
    return drawn, EndNames(axes, ends, _NAMES)


def _short(method: str) -> str:
    """Shorten the name at the end of a line.

    >>> _short("CASCADE, always a case"), _short("zero-shot")
    ('always a case', 'no memory')
    """
    return brief("no memory" if method == "zero-shot" else method.removeprefix("CASCADE, "), 17)


def _curves(
    section: Section, task: str, curve: Curve, skip: float = 0.0
) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64] | None]]:
    """Compute for each method the places to plot, the means over seeds there, and half the width of their intervals."""
    found: dict[str, Any] = {}
    for method in section.methods:
        lines = [values for row in section.of(task, method) if (values := curve(row)) is not None]
        if not lines:
            continue
        n = min(map(len, lines))
        places = np.unique(np.linspace(skip * (n - 1), n - 1, _POINTS).astype(np.int64))
        table = np.array([line[places] for line in lines])
        half = np.array([interval(column)[1] for column in table.T]) if len(lines) >= ENOUGH else None
        found[method] = (places + 1, table.mean(axis=0), half)
    return found


def _ends_in_words(section: Section, task: str, curve: Curve, what: str) -> str:
    """Describe in words the last value of each coloured line."""
    curves = _curves(section, task, curve)
    ends = ", ".join(f"{name} {curves[name][1][-1]:.1f}" for name in strong(section.methods) if name in curves)
    tasks = max((int(steps[-1]) for steps, _, _ in curves.values()), default=0)
    return f"{task}, {what} after {tasks} tasks: {ends}."
