"""Measures methods on a user's own stream of tasks, with a solver and several seeds; returns a row for each run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cascade_memory.domain import MAX_SOLUTION_CHARS, check_query, check_text
from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.bench.conditions import CLEAN, rewards_named
from cascade_memory.evaluation.bench.human import HUMAN
from cascade_memory.evaluation.bench.methods import KNOWN, QUICK
from cascade_memory.evaluation.bench.names import FILE, SHUFFLED
from cascade_memory.evaluation.bench.plan import Run, Suite
from cascade_memory.evaluation.bench.rows import Row, Rows
from cascade_memory.evaluation.bench.runner import run, work_of
from cascade_memory.evaluation.bench.setup import Setup, under_each
from cascade_memory.evaluation.bench.stage import Folders, Stage, catalogued, embedded
from cascade_memory.evaluation.bench.stages import WORLDS
from cascade_memory.evaluation.rivals.known import is_rival
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE
from cascade_memory.evaluation.tasks.task import Task


class Attempts(Protocol):
    """What ``measure`` needs of a solver; ``Simulated(alone=...)`` and ``Model(chat=...)`` have it."""

    @property
    def name(self) -> str:
        """The name of the solver in rows."""
        ...

    @property
    def declared(self) -> Mapping[str, Any]:
        """The parameters of the solver, for the row."""
        ...

    def stage(self, task: Task, run: Run, folders: Folders) -> Stage:
        """Build the stage (``stage.Stage``): the task's stream with this solver."""
        ...


@runtime_checkable
class ActsInWorlds(Protocol):
    """A solver that can also act in an environment, such as ``Model(chat=...)``."""

    def stage_in_world(self, run: Run, folders: Folders) -> Stage:
        """Build the stage (``stage.Stage``): the environment's stream with this solver."""
        ...


@runtime_checkable
class BringsMethods(Protocol):
    """A solver that adds methods without a memory to those that the benchmark compares, as ``LocalModel(folder=...)`` does."""

    @property
    def own_methods(self) -> Sequence[str]:
        """The names of the solver's own methods."""
        ...


@dataclass(frozen=True, slots=True)
class Staged:
    """Builds the stage of a run (``stage.Stage``); it can be pickled, so that other processes can use it.

    ``own`` is the user's task; None if the tasks are those of the catalogue.
    """

    solver: Attempts
    own: Task | None
    declared: Mapping[str, Any]

    def __call__(self, run: Run, folders: Folders) -> Stage:
        """Build the stage of a run."""
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
    setup: Setup | Sequence[Setup] | None = None,
    order: str = SHUFFLED,
    jobs: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """Play a task, or tasks of the catalogue by name, with every method and ``seeds`` seeds; return a row for each run.

    Args:
        task: An object with ``name``, ``instruction``, ``max_steps``, ``items`` and ``reward``; or names of the catalogue.
        data: The folder from which the task reads its items.
        solver: The solver of the tasks: ``Simulated(alone=...)`` or ``Model(chat=...)``.
        out: The file for the rows. A run that has a row there is not played again.
        methods: The methods to compare; "module:Class" names a memory of your own, a class with ``recall`` and ``reward``.
        seeds: How many times the stream is played, each time with another seed.
        limit: Play only this many tasks from the beginning of the stream.
        rewards: How rewards arrive: "clean", or, for example, "late=100" (tasks), "missing=0.5" or "flipped=0.2"; each of the
            given ways is played.
        setup: A reranker, an embedder, k, alpha and a learning rate for the methods: ``Setup(ranker="./reranker", k=4)``; or
            several of these, each of which is played.
        order: "shuffled": each seed plays the stream in another order; "file": each seed plays it in the stream's own
            order, as in the paper.
        jobs: The number of parallel processes; with more than one, the task and the solver must be picklable.
        progress: Whether to show a progress bar; by default only in a terminal.
    """
    if isinstance(task, Sequence):
        own, names = None, [task] if isinstance(task, str) else task
    else:
        own, names = task, [task.name]
    if own is not None and own.name in (*CATALOGUE, *WORLDS):
        raise InvalidInput(f"{own.name!r} is the name of a stream of the catalogue: rename yours, or pass only the name")
    known = [*(solver.own_methods if isinstance(solver, BringsMethods) else ()), *KNOWN, *HUMAN]
    unknown = [method for method in methods if method not in known and not is_rival(method)]
    if unknown:
        raise InvalidInput(f"there is no method {unknown[0]!r}; there are {', '.join(known)}")
    suite = Suite(tasks=names, methods=methods, seeds=seeds, limit=limit, rewards=[rewards_named(one) for one in rewards])
    if order not in (FILE, SHUFFLED):
        raise InvalidInput(f"the order must be {FILE!r} or {SHUFFLED!r}, not {order!r}")
    suite = replace(suite, order=FILE if order == FILE else "")
    if seeds < 1 or (limit is not None and limit < 1):
        raise InvalidInput(f"seeds and limit must be at least 1, not {seeds} and {limit}")
    out, data = Path(out), Path(data)
    runs, models = under_each(setup, (replace(one, solver=solver.name) for one in suite.runs()))
    declared = {**solver.declared, **({} if own is None else {"stream": _fingerprint(own, data, limit)})}
    rows = Rows(out)
    _check_same(rows.of(runs), declared, out)
    for one in runs:
        rows.check_declared(asdict(one), declared)
    staged = Staged(solver, own, declared)
    try:
        return run(runs, data, out, staged=staged, jobs=jobs, progress=progress, models=models)
    except ModelUnavailable as error:
        kept = f"finished rows are in {out}, answered requests in {work_of(out)}: run it again to continue from there"
        raise ModelUnavailable(f"{error}. {kept}") from error


def _fingerprint(task: Task, data: Path, limit: int | None) -> str:
    """Hash a stream, to detect a different one with the same name."""
    if type(task).__hash__ is None:
        raise InvalidInput(f"the task {task.name!r} must be hashable: @dataclass(frozen=True), or a plain class")
    embedded.cache_clear()  # the file may have changed
    items = task.items(data)[:limit]
    if not items:
        raise InvalidInput(f"the task {task.name!r} has no items")
    for number, item in enumerate(items, start=1):  # check all items now, and not in the middle of a run
        try:
            check_query(item.query)
            check_text(item.solution, "the label", MAX_SOLUTION_CHARS)
        except InvalidInput as error:
            raise InvalidInput(f"task {number} of {task.name!r}: {error}") from error
    judge: Any = getattr(task, "judge", type(task))
    named = judge if hasattr(judge, "__qualname__") else type(judge)  # a callable object has no name, so take that of its class
    facts = [
        task.instruction,
        task.max_steps,
        f"{named.__module__}.{named.__qualname__}",
        [[item.query, item.label, *([item.context] if item.context else [])] for item in items],
    ]
    return hashlib.blake2b(json.dumps(facts, default=repr).encode(), digest_size=8).hexdigest()


def _check_same(rows: Sequence[Row], declared: Mapping[str, Any], out: Path) -> None:
    """Raise an error if existing rows were measured with other parameters of the solver, or on another stream."""
    other = next((row["declared"] for row in rows if row["declared"] != declared), None)
    if other is not None:
        raise InvalidInput(f"{out} has rows of these runs with {other}, not {declared}: name another file")
