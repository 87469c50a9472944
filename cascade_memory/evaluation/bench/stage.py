"""The stage of a run: the tasks in the order of play, the solver, and the solver's declared parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain import CaseText
from cascade_memory.encoders import HashingEmbedder, TextModelEmbedder, default_embedder, is_installed
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.names import FILE
from cascade_memory.evaluation.bench.plan import ALONE, ALONE_REUSE, MATCHED, MISLED, Run
from cascade_memory.evaluation.bundled import DIFFERS, bundled_data
from cascade_memory.evaluation.stream import PrecomputedEmbedder, SimulatedSolver, Solver
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE, task_named
from cascade_memory.evaluation.tasks.task import Item, Task
from cascade_memory.ports import Embedder


@dataclass(frozen=True, slots=True)
class Folders:
    """The folder with the data of the tasks, and the folder for files that are made from it."""

    data: Path
    work: Path
    models: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)  # folder of each model by its name in rows

    def model(self, run: Run, kind: str) -> str:
        """Return the folder of a run's "ranker" or "embedder"; an empty text if it has the default one."""
        name = json.loads(run.models or "{}").get(kind)
        if name is None:
            return ""
        if name not in self.models:
            raise InvalidInput(f"the {kind} {name!r} of {run.method!r} is not known: name its folder with --{kind}")
        return self.models[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The tasks in the order of play, and their solver."""

    queries: Sequence[str]
    solver: Solver
    embedder: Embedder
    declared: Mapping[str, Any]  # the parameters of the solver, for the row
    solutions: Sequence[str] | None = None  # the right solutions, if they are texts
    recurring: bool = True  # whether these are labels that recur; if not, equal texts do not say whether a case helps
    truths: Sequence[str] | None = None  # the right solutions if they do not recur; wrong cases are made from either
    alone: Sequence[bool] | None = None  # which tasks the solver solves without memory
    case_text: CaseText | None = None  # the text by which a case is found, if not by its query alone
    kinds: Sequence[str] | None = None  # the type of each task, only for the report: neither memory nor solver sees it
    splits: Sequence[str] | None = None  # the same for another way to group the tasks, such as "seen" and "unseen" rooms
    remembers: bool = True  # whether the method has a memory, as all have that the benchmark itself knows
    account: Callable[[], Mapping[str, Any]] = dict[str, Any]  # further columns of the row, known at the end
    close: Callable[[], None] = field(default=lambda: None)


Staging: TypeAlias = Callable[[Run, Folders], Stage]


def order_of(n: int, seed: int, order: str = "") -> NDArray[np.int64]:
    """Return the order in which a stream is played with this seed: shuffled, or the stream's own.

    >>> order_of(3, seed=1).tolist(), order_of(3, seed=1, order="file").tolist()
    ([1, 2, 0], [0, 1, 2])
    """
    return np.arange(n) if order == FILE else np.random.default_rng([seed, 7]).permutation(n)


def best_embedder(folder: str = "") -> Embedder:
    """Return the embedder in a folder; without one, MiniLM if it is installed, otherwise the hashing embedder."""
    if folder:
        return TextModelEmbedder(folder)
    return default_embedder() if is_installed() else HashingEmbedder()


@lru_cache(maxsize=2)
def embedded(task: Task, limit: int | None, data: Path, model: str = "") -> tuple[list[Item], PrecomputedEmbedder]:
    """Load a stream and the vectors of its queries, once per process; ``model`` is the folder of the embedder."""
    items = task.items(data)[:limit]
    return items, PrecomputedEmbedder(best_embedder(model), [item.query for item in items])


@cache
def catalogued(name: str) -> Task:
    """Return a task of the catalogue. A process uses only one object per task, since some keep databases open."""
    return task_named(name)


def in_order(items: Sequence[Item], run: Run) -> list[Item]:
    """Return a stream in the order of a run; a log file always keeps its order in time."""
    return list(items) if run.task == "lfd" else [items[i] for i in order_of(len(items), run.seed, run.order)]


def data_differs(run: Run, folders: Folders) -> dict[str, str]:
    """Return the column "differs" for a row: how the data of the run's task differs from the paper's.

    The text is empty if DTLBench's own files are read. A task that DTLBench does not have gets no such column.
    """
    entry = CATALOGUE.get(run.task)
    if entry is None or entry.published is None:
        return {}
    if folders.data == bundled_data():
        return {"differs": DIFFERS.get(run.task, "")}
    return {"differs": "" if entry.published.is_there(folders.data) else entry.stand_in}


def solved_alone(run: Run, n: int) -> list[bool]:
    """Draw by the seed which tasks a reuse agent solves without a case; they are the same for every method."""
    return cast("list[bool]", (np.random.default_rng([run.seed, 1]).random(n) < ALONE_REUSE).tolist())


def simulated_stage(run: Run, folders: Folders) -> Stage:
    """Build the stage: a stream of texts with the SIMULATED solver."""
    return _simulated(run).stage(catalogued(run.task), run, folders)


def _simulated(run: Run) -> Simulated:
    return Simulated(alone=ALONE[run.task], misled=MISLED if run.misled is None else run.misled)


def declared_of(run: Run) -> Mapping[str, Any]:
    """Return the declared parameters of the solver of a suite's run, as far as they are known before the run.

    >>> declared_of(Run("rca", "CASCADE", seed=0)), declared_of(Run("spider", "CASCADE", seed=0, solver="reuse"))
    ({'alone': 0.454, 'matched': 0.97, 'misled': 0.5}, {'alone': 0.2})
    """
    return _simulated(run).declared if run.solver == "simulated" else {"alone": ALONE_REUSE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The SIMULATED solver: how often it succeeds alone and with a right case, and how often a wrong case spoils a success."""

    alone: float
    matched: float = MATCHED
    misled: float = MISLED

    def __post_init__(self) -> None:
        if not all(0.0 <= one <= 1.0 for one in (self.alone, self.matched, self.misled)):
            raise InvalidInput(f"alone, matched and misled must be probabilities, between 0 and 1, not {dict(self.declared)}")

    @property
    def name(self) -> str:
        """The name of the solver in rows."""
        return "simulated"

    @property
    def declared(self) -> Mapping[str, Any]:
        """The parameters of the solver, for the row."""
        return {"alone": self.alone, "matched": self.matched, "misled": self.misled}

    def stage(self, task: Task, run: Run, folders: Folders) -> Stage:
        """Build the stage: the task's stream with this solver."""
        stream, embedder = embedded(task, run.limit, folders.data, folders.model(run, "embedder"))
        items = in_order(stream, run)
        labels = [item.solution for item in items]
        solver = SimulatedSolver(labels, zero_shot=self.alone, misled=self.misled, matched=self.matched, seed=run.seed)
        return Stage(
            queries=[item.query for item in items],
            solver=solver,
            embedder=embedder,
            declared=self.declared,
            solutions=labels,
            alone=[solver.solve(place, None).success for place in range(len(items))],
        )
