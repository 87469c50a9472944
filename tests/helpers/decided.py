"""What the tests of people's decisions share: one task, the newest entry of the audit log, and what is shown for the task."""

from __future__ import annotations

from cascade_memory import CascadeMemory

TASK = "cool some mug"


def latest(memory: CascadeMemory) -> str:
    return next(memory.review.audit()).id


def shown(memory: CascadeMemory) -> list[str]:
    return [str(case.solution) for case in memory.cases.search(TASK, k=8).cases]
