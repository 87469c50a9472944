"""Tasks whose right solutions are labels that recur: for these, the text of a case shows whether its solution is right."""

from __future__ import annotations

from cascade_memory.evaluation.judging.labels import exact
from cascade_memory.evaluation.tasks.task import Task

# In the other tasks, two equal solutions are rare or a coincidence: a query of SQL answers one question, a list names the
# medications of one patient, several specialties may be right. There, a case helps if it can be adapted: only an attempt tells.
LABELLED = frozenset({"ddxplus", "mimic-iv-tlp", "banking77", "rca", "lfd"})


def recurs(task: Task) -> bool:
    """Say whether the right solutions of a task are labels that recur: its name is in ``LABELLED`` or its judge is ``exact``.

    >>> from cascade_memory.evaluation.tasks.catalogue import task_named
    >>> recurs(task_named("banking77")), recurs(task_named("spider"))
    (True, False)
    """
    return task.name in LABELLED or getattr(task, "judge", None) is exact
