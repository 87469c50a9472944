"""Measure on a stream of one's own: one task, some methods, some seeds, a solver; rows come back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cascade_memory.domain.validation import MAX_SOLUTION_CHARS, check_query, check_text
from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.bench.conditions import CLEAN, rewards_named
from cascade_memory.evaluation.bench.human import HUMAN
from cascade_memory.evaluation.bench.methods import KNOWN, QUICK
from cascade_memory.evaluation.bench.plan import Run, Suite
from cascade_memory.evaluation.bench.rows import Row, Rows
from cascade_memory.evaluation.bench.runner import run, work_of
from cascade_memory.evaluation.bench.stage import Folders, Stage, catalogued, embedded
from cascade_memory.evaluation.bench.stages import WORLDS
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE
from cascade_memory.evaluation.tasks.task import Task


class Attempts(Protocol):
    """Who attempts the tasks: ``Simulated(alone=...)`` or ``Model(chat=...)``."""

    @property
    def name(self) -> str:
        """What rows call it."""
        ...

    @property
    def declared(self) -> Mapping[str, Any]:
        """Its parameters, for the row."""
        ...

    def stage(self, task: Task, run: Run, folders: Folders) -> Stage:
        """Return the task's stream with this solver."""
        ...


@runtime_checkable
class ActsInWorlds(Protocol):
    """Who can be put into an environment: ``Model(chat=...)``."""

    def stage_in_world(self, run: Run, folders: Folders) -> Stage:
        """Return the environment's stream with this solver."""
        ...


@dataclass(frozen=True, slots=True)
class _Staging:
    """What makes the stages; plain enough to be sent to another process."""

    solver: Attempts
    own: Task | None
    declared: Mapping[str, Any]

    def __call__(self, run: Run, folders: Folders) -> Stage:
        if self.own is None and run.task in WORLDS and isinstance(self.solver, ActsInWorlds):
            return replace(self.solver.stage_in_world(run, folders), declared=self.declared)
        stage = self.solver.stage(catalogued(run.task) if self.own is None else self.own, run, folders)
        return replace(stage, declared=self.declared)


def measure(
    task: Task | str | Sequence[str],
    *,
    data: Path | str,
    solver: Attempts,
    out: Path | str,
    methods: Sequence[str] = QUICK,
    seeds: int = 2,
    limit: int | None = None,
    rewards: Sequence[str] = (CLEAN,),
    jobs: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """Play a task, or tasks of the catalogue by name, with every method in ``seeds`` orders; return a row for each.

    Args:
        task: An object with ``name``, ``instruction``, ``max_steps``, ``items`` and ``reward``; or names.
        data: The folder from which it reads its items.
        solver: Who attempts the tasks: ``Simulated(alone=...)`` or ``Model(chat=...)``.
        out: The file of the rows. What has a row there is not played again.
        methods: What is compared.
        seeds: In how many orders.
        limit: The first tasks of the stream only.
        rewards: How they arrive: "clean", or such as "late=100" (tasks), "missing=0.5" or "flipped=0.2"; each is played.
        jobs: Processes at once; more than one needs a task and a solver that can be pickled.
        progress: Whether to show a bar; by default where somebody looks.
    """
    if isinstance(task, Sequence):
        own, names = None, [task] if isinstance(task, str) else task
    else:
        own, names = task, [task.name]
    if own is not None and own.name in (*CATALOGUE, *WORLDS):
        raise InvalidInput(
            f"{own.name!r} is the name of one of the paper's streams: give yours another, or pass the name alone"
        )
    unknown = [method for method in methods if method not in KNOWN and method not in HUMAN]
    if unknown:
        raise InvalidInput(f"there is no method {unknown[0]!r}; there are {', '.join([*KNOWN, *HUMAN])}")
    suite = Suite(tasks=names, methods=methods, seeds=seeds, limit=limit, rewards=[rewards_named(one) for one in rewards])
    if seeds < 1 or (limit is not None and limit < 1):
        raise InvalidInput(f"seeds and limit count from 1, not {seeds} and {limit}")
    out, data = Path(out), Path(data)
    runs = [Run(one.task, one.method, one.seed, limit, solver.name, rewards=one.rewards) for one in suite.runs()]
    declared = {**solver.declared, **({} if own is None else {"stream": _fingerprint(own, data, limit)})}
    _check_same(Rows(out).of(runs), declared, out)
    staged = _Staging(solver, own, declared)
    try:
        return run(runs, data, out, staged=staged, jobs=jobs, progress=progress)
    except ModelUnavailable as error:
        kept = f"finished rows are in {out}, answered requests in {work_of(out)}: the same again goes on from there"
        raise ModelUnavailable(f"{error}. {kept}") from error


def _fingerprint(task: Task, data: Path, limit: int | None) -> str:
    """Return what tells a stream from another of the same name."""
    if type(task).__hash__ is None:
        raise InvalidInput(f"the task {task.name!r} must be hashable: @dataclass(frozen=True), or a plain class")
    embedded.cache_clear()  # its file may have changed since
    items = task.items(data)[:limit]
    if not items:
        raise InvalidInput(f"the task {task.name!r} has no items")
    for number, item in enumerate(items, start=1):  # now, not in the middle of a run
        try:
            check_query(item.query)
            check_text(item.solution, "the label", MAX_SOLUTION_CHARS)
        except InvalidInput as error:
            raise InvalidInput(f"task {number} of {task.name!r}: {error}") from error
    judge: Any = getattr(task, "judge", type(task))
    named = judge if hasattr(judge, "__qualname__") else type(judge)  # an object that can be called has no name of its own
    asked = [
        task.instruction,
        task.max_steps,
        f"{named.__module__}.{named.__qualname__}",
        [[item.query, item.label] for item in items],
    ]
    return hashlib.blake2b(json.dumps(asked, default=repr).encode(), digest_size=8).hexdigest()


def _check_same(rows: Sequence[Row], declared: Mapping[str, Any], out: Path) -> None:
    """Refuse to take rows for an answer that were made with other parameters, or of another stream."""
    other = next((row["declared"] for row in rows if row["declared"] != declared), None)
    if other is not None:
        raise InvalidInput(f"{out} has rows of these runs with {other}, not {declared}: name another file")
