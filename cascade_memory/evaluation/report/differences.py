"""Paired differences between two methods: with the same seed, both have the same order of tasks and the same solver.

Tasks that a human answered are left out, so that no method gets credit for what a human solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cascade_memory.evaluation.bench.human import HUMAN
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.report.section import Measure, Section, bits, solved

_PER_TASK = ("success", "shown", "fitting", "covered", "alone", "asked")
NOTE = " With a human: of the tasks that the method attempted itself; those that the human answered are left out."
ENOUGH = 3  # seeds for a verdict: whole tasks are counted, so two of them agree by chance now and then
Verdict = Literal["more", "fewer", "open"]


def helped(section: Section, method: str) -> bool:
    """Say whether a human helped a method."""
    return any(row["method"] in HUMAN for row in section.of_method(method))


def note(section: Section) -> str:
    """Return the note below the figures of a section; it is empty if no human was asked."""
    return NOTE if any(row.get("asked") for row in section.rows.values()) else ""


def unasked(row: Row, other: Row) -> Row:
    """Reduce a row to the tasks about which no human was asked, neither in this row nor in the other.

    >>> left = unasked({"n": 4, "rate": 0.5, "success": "0110"}, {"n": 4, "asked": "0010"})
    >>> left["n"], left["success"], round(left["rate"], 2)
    (3, '010', 0.33)
    """
    found = [asked for one in (row, other) if one["n"] == row["n"] and (asked := bits(one, "asked")) is not None]
    success = bits(row, "success")
    if not found or success is None:
        return row
    left = np.flatnonzero(~np.any(found, axis=0))
    texts = {name: "".join(row[name][place] for place in left) for name in _PER_TASK if bits(row, name) is not None}
    rest = {name: value for name, value in row.items() if name != "rate_unasked"}
    return {**rest, **texts, "n": len(left), "rate": float(success[left].mean())}


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean difference over seeds, in percentage points, and half the width of its 95 % interval.

    >>> Difference(2.0, 1.5, seeds=5).verdict, Difference(2.0, 2.5, seeds=5).verdict, Difference(2.0, 0.0, seeds=2).verdict
    ('more', 'open', 'open')
    """

    mean: float
    half: float
    seeds: int

    @property
    def verdict(self) -> Verdict:
        """Say on which side of zero the whole interval lies; "open" if it contains zero, or if there are too few seeds."""
        if self.seeds < ENOUGH:
            return "open"
        if self.mean - self.half > 0:
            return "more"
        return "fewer" if self.mean + self.half < 0 else "open"

    def __str__(self) -> str:
        """Format the difference with its sign."""
        mean = f"{self.mean:+.1f}".replace("-", "−")
        return mean if np.isnan(self.half) else f"{mean} ± {self.half:.1f}"


def on_task(section: Section, task: str, method: str, base: str, measure: Measure = solved) -> Difference | None:
    """Compute by how much a method is ahead of the base method on a task; None if no seed has both methods."""
    return on_average(section, [task], method, base, measure)


def on_average(section: Section, tasks: list[str], method: str, base: str, measure: Measure = solved) -> Difference | None:
    """Compute how far a method is ahead of the base method on average, from seeds that have both methods on all tasks."""
    by_task = [_by_seed(section, task, method, base, measure) for task in tasks]
    paired = [
        float(np.mean([one[seed] for one in by_task]))
        for seed in section.seeds
        if by_task and all(seed in one for one in by_task)
    ]
    return Difference(*interval(paired), seeds=len(paired)) if paired else None


def _by_seed(section: Section, task: str, method: str, base: str, measure: Measure) -> dict[int, float]:
    """Compute the difference for each seed, on those tasks of the stream that both methods attempted without a human."""
    found: dict[int, float] = {}
    for seed in section.seeds:
        mine, its = (section.rows.get((task, one, seed)) for one in (method, base))
        if mine is None or its is None:
            continue
        ours, theirs = measure(unasked(mine, its)), measure(unasked(its, mine))
        if ours is not None and theirs is not None:
            found[seed] = ours - theirs
    return found


def comparable(section: Section, method: str, base: str, measure: Measure = solved) -> list[str]:
    """Return the tasks on which both methods were played with the same seed."""
    return [task for task in section.tasks if on_task(section, task, method, base, measure) is not None]
