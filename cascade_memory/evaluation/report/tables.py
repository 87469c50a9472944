"""The tables of the report, with the figures of the charts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.report import paper, regret
from cascade_memory.evaluation.report.differences import comparable, helped, note, on_average, on_task
from cascade_memory.evaluation.report.markup import Cell, Table
from cascade_memory.evaluation.report.section import (
    Measure,
    Section,
    declared,
    mean_text,
    solved,
    solved_last_fifth,
    solved_of_the_rest,
)
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

_COSTS = {
    "ms_per_task": "ms per task",
    "steps_per_task": "tool calls or actions per task",
    "cases": "cases kept",
    "peak_memory_gib": "peak memory of the language model in GiB",
    "ranker_memory_gib": "peak memory of the reranker and its training in GiB",
    "tokens": "tokens",
    "cost": "cost",
}
_OF_WHAT: dict[Measure, str] = {
    solved: "",
    solved_of_the_rest: " of the tasks that the solver does not solve alone",
    solved_last_fifth: " of the last fifth of the tasks",
}


def streams(section: Section) -> Table:
    """List for each task its length, the declared parameters of its solver, and how its data differs from the paper's."""
    lines: list[list[str]] = []
    for task in section.tasks:
        rows, entry = section.of_task(task), CATALOGUE.get(task)
        parameters = ", ".join(f"{name} {_number(value)}" for name, value in declared(rows[0]).items())
        embedders = ", ".join(sorted({str(row["embedder"]) for row in rows if row.get("embedder")}))
        lengths = ", ".join(str(n) for n in sorted({row["n"] for row in rows}))
        differs = rows[0].get("differs", entry.stand_in if entry else "")  # a row knows it better, if it says it
        lines.append([task, lengths, parameters, embedders, str(differs)])
    head = ["task", "tasks", "declared of the solver", "embedder", "data differs from the paper's"]
    return Table("Streams", head, lines, words={2, 3, 4})


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def success(section: Section, measure: Measure = solved) -> Table:
    """Tabulate the success of each method on each task, and its mean over tasks."""
    lines = [
        [
            method,
            *(mean_text(list(section.by_seed(task, method, measure).values())) for task in section.tasks),
            mean_text(_averages(section, method, measure)),
        ]
        for method in section.methods
    ]
    caption = f"Percent solved{_OF_WHAT[measure]}"
    if measure is solved:
        caption += ", mean over seeds ± half of the 95 % interval"
    return Table(caption + (f".{text}" if (text := note(section)) else ""), ["method", *section.tasks, "average"], lines)


def _averages(section: Section, method: str, measure: Measure) -> list[float]:
    found = [section.by_seed(task, method, measure) for task in section.tasks]
    return [float(np.mean([one[seed] for one in found])) for seed in section.seeds if all(seed in one for one in found)]


def normalised(section: Section) -> Table:
    """Tabulate the success of each method as a part of the best one's on each task, as in the paper's Fig. 3b.

    A method with a human's help, or with parameters of its own, is left out.
    """
    methods = [method for method in section.methods if " {" not in method and not helped(section, method)]
    means = {
        (task, method): float(np.mean(list(its.values())))
        for task in section.tasks
        for method in methods
        if (its := section.by_seed(task, method, solved))
    }
    best = {task: max([value for (its_task, _), value in means.items() if its_task == task] or [0]) for task in section.tasks}
    tasks = [task for task in section.tasks if best[task]]  # a task that no method solves tells nothing
    lines: list[list[str]] = []
    for method in methods:
        its = [means[task, method] / best[task] if (task, method) in means else None for task in tasks]
        known = [one for one in its if one is not None]
        average = f"{np.mean(known):.3f}" if known and len(known) == len(its) else ""
        lines.append([method, *("" if one is None else f"{one:.3f}" for one in its), average])
    return Table("Normalised: 1 is the success of the best method on the task", ["method", *tasks, "average"], lines)


def rest_is_known(section: Section) -> bool:
    """Say whether any row records which tasks the solver solves alone."""
    return any(solved_of_the_rest(row) is not None for row in section.rows.values())


def beside_the_paper(section: Section) -> Table | None:
    """Tabulate our figures with those of the paper in a separate column."""
    lines: list[list[str]] = []
    for task in section.tasks:
        for method in section.methods:
            rows = section.of(task, method)
            found = paper.reported(task, method, rows[0] if rows else None)
            here = _with_deviation(list(section.by_seed(task, method, solved).values()))
            if found is not None and here:
                lines.append([task, method, here, *found, "; ".join(paper.unlike(rows[0])) or "nothing"])
    head = ["task", "method here", "here", "model in the paper", "method in the paper", "paper", "what differs"]
    caption = "Beside the paper's figures: mean ± standard deviation over seeds"
    return Table(caption, head, lines, words={1, 3, 4, 6}) if lines else None


def _with_deviation(values: Sequence[float]) -> str:
    if not values:
        return ""
    return f"{np.mean(values):.2f}" + (f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else "")


def missed(section: Section) -> Table | None:
    """Tabulate the regret at the end of the streams and, where they are known, its two parts (see ``regret.split``)."""
    lines: list[list[str]] = []
    for task in section.tasks:
        for method in section.methods:
            rows = section.of(task, method)
            whole = [float(total[-1]) for row in rows if (total := regret.total(row)) is not None]
            parts = [both for row in rows if (both := regret.split(row)) is not None]
            if whole:
                ends = [[float(part[-1]) for part in side] for side in zip(*parts, strict=True)] if parts else []
                lines.append([task, method, mean_text(whole), *(map(mean_text, ends) if ends else ("", ""))])
    head = ["task", "method", "regret", "coverage gap", "retrieval regret"]
    if not any(line[3] for line in lines):
        head, lines = head[:3], [line[:3] for line in lines]
    return Table("Missed by the end of the stream, in tasks", head, lines, words={1}) if lines else None


def differences(section: Section, measure: Measure = solved) -> list[Table]:
    """For each base method, make a table that shows by how much each other method is ahead of it."""
    tables: list[Table] = []
    for base in section.bases:
        lines = [
            _line(section, method, base, measure) for method in section.methods if comparable(section, method, base, measure)
        ]
        if base not in section.methods or len(lines) < 2:
            continue
        head = ["method", *section.tasks, "average", "over tasks", "seeds"]
        others = [line for line in lines if line[0] != base]
        comma = "," if _OF_WHAT[measure] else ""
        more = f".{text}" if (text := note(section)) else ""
        tables.append(Table(f"Points more than {base}{comma}{_OF_WHAT[measure]}{more}", head, others))
    return tables


def _line(section: Section, method: str, base: str, measure: Measure) -> list[str | Cell]:
    shared = comparable(section, method, base, measure)
    found = [on_task(section, task, method, base, measure) for task in section.tasks]
    mean = on_average(section, shared, method, base, measure)
    cells = ["" if one is None else Cell(str(one), one.verdict) for one in (*found, mean)]
    return [method, *cells, str(len(shared)), "" if mean is None else str(mean.seeds)]


def by_kind(section: Section) -> list[Table]:
    """For each stream whose tasks have kinds or splits, make a table of the success by each of them."""
    tables: list[Table] = []
    for column, what in (("kinds", "kind"), ("splits", "split")):
        for task in section.tasks:
            kinds = list(dict.fromkeys(kind for row in section.of_task(task) for kind in _kinds(row, column)))
            if kinds:
                lines = [
                    [kind, *(_of_kind(section.of(task, method), kind, column) for method in section.methods)] for kind in kinds
                ]
                caption = f"Percent solved of {task} by {what} (in brackets: of what the solver does not solve alone)"
                tables.append(Table(caption, [what, *section.methods], lines))
    return tables


def _kinds(row: Row, column: str) -> dict[str, Sequence[float | None]]:
    return row.get(column) or {}


def _of_kind(rows: list[Row], kind: str, column: str) -> str:
    # Rows with a human count the human's answers as solved, and do not record their kinds.
    found = [_kinds(row, column)[kind] for row in rows if kind in _kinds(row, column) and not row.get("asked")]
    of_all, of_rest = (
        [float(100 * value) for one in found if len(one) > place and (value := one[place]) is not None] for place in (1, 2)
    )
    return f"{mean_text(of_all)} ({np.mean(of_rest):.1f})" if of_rest else mean_text(of_all)


def costs(section: Section) -> list[Table]:
    """Make a table for each cost that any row records."""
    tables: list[Table] = []
    for key, title in _COSTS.items():
        lines = [[method, *(_cost(section.of(task, method), key) for task in section.tasks)] for method in section.methods]
        if any(cell for line in lines for cell in line[1:]):
            tables.append(Table(f"{title[0].upper()}{title[1:]}, mean over seeds", ["method", *section.tasks], lines))
    return tables


def _cost(rows: list[Row], key: str) -> str:
    values = [float(one) for row in rows if isinstance(one := row.get(key), (int, float))]
    if not values:
        return ""
    mean = float(np.mean(values))
    return f"{mean:,.0f}" if mean >= 1_000 else f"{mean:.3g}"
