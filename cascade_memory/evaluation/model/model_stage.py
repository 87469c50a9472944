"""A real model as the solver of a benchmark's runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.household_stage import LIMITS, games_of
from cascade_memory.evaluation.bench.plan import CONDITIONS, Run
from cascade_memory.evaluation.bench.science_stage import experiments_of
from cascade_memory.evaluation.bench.stage import Folders, Stage, embedded, in_order
from cascade_memory.evaluation.model.acting import ActingSolver, Scene
from cascade_memory.evaluation.model.asking import Asking, Prices
from cascade_memory.evaluation.model.chat import Chat
from cascade_memory.evaluation.model.model_solver import ModelSolver
from cascade_memory.evaluation.model.scenes import HouseholdScene, ScienceScene
from cascade_memory.evaluation.stream import PrecomputedEmbedder
from cascade_memory.evaluation.tasks.task import Task

_UNFIT = re.compile(r"[^\w.=+-]+")


@runtime_checkable
class KeepsLog(Protocol):
    """A task's judge that asks a model itself: ``ModelJudge``, which is not imported, since it imports from here."""

    def keep_log(self, path: Path) -> Asking | None:
        """Log its requests from now on, and return who asks them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A chat model that solves the tasks. Its requests are logged in the folder beside the rows, and answered once."""

    chat: Chat
    prices: Prices | None = None
    thinks: bool = True  # before each action, where it acts in a world (ReAct)

    def __post_init__(self) -> None:
        if self.name.startswith(("simulated", "reuse")):
            raise InvalidInput(f"rows would take the model {self.name!r} for a solver without one: give it another name")

    @property
    def name(self) -> str:
        """What rows call it."""
        return self.chat.name

    @property
    def declared(self) -> Mapping[str, Any]:
        """How it samples, for the row."""
        return {**self.chat.settings, **({} if self.thinks else {"thinks": False})}

    def stage(self, task: Task, run: Run, folders: Folders) -> Stage:
        """Return the task's stream with this solver."""
        stream, embedder = embedded(task, run.limit, folders.data)
        items = in_order(stream, run.task, run.seed)
        log = folders.work / "requests" / log_name(run)
        asking = Asking(self.chat, log=log, prices=self.prices)
        judge = getattr(task, "judge", None)
        judging = judge.keep_log(log.with_name(f"judge-{log.name}")) if isinstance(judge, KeepsLog) else None
        return Stage(
            queries=[item.query for item in items],
            solver=ModelSolver(task, items, asking),
            embedder=embedder,
            declared=self.declared,
            solutions=[item.solution for item in items],
            account=lambda: {**asking.account(), **({} if judging is None else _of_the_judge(judging))},
        )

    def stage_in_world(self, run: Run, folders: Folders) -> Stage:
        """Return a stream of tasks in a world in which it acts."""
        scene, queries, kinds, embedder = scene_for(run, folders)
        asking = Asking(self.chat, log=folders.work / "requests" / log_name(run), prices=self.prices)
        return Stage(
            queries=queries,
            solver=ActingSolver(scene, asking, thinks=self.thinks),
            embedder=embedder,
            declared=self.declared,
            kinds=kinds,
            account=asking.account,
            close=scene.close,
        )


def _of_the_judge(judging: Asking) -> dict[str, Any]:
    return {f"judge_{name}": value for name, value in judging.account().items()}


def scene_for(run: Run, folders: Folders) -> tuple[Scene, list[str], list[str], PrecomputedEmbedder]:
    """Return the world of a run, the queries and kinds of its tasks in their order, and the vectors of the queries."""
    if run.task == "scienceworld":
        tasks, embedder = experiments_of(run, folders)
        return ScienceScene(tasks), [task.text for task in tasks], [task.place.kind for task in tasks], embedder
    games, embedder = games_of(run, folders)
    return HouseholdScene(games, LIMITS[run.task]), [game.query for game in games], [game.kind for game in games], embedder


def log_name(run: Run) -> Path:
    """Return a file's name that tells the run, and differs from those of all others.

    >>> log_name(Run("banking77", "CASCADE, k = 2", 0, solver="Qwen/Qwen3-32B")).name
    'banking77-CASCADE-k-=-2-0-None-Qwen-Qwen3-32B--f8264d.jsonl'
    """
    named = asdict(run)
    # Conditions count only where there are any: a log that was begun before they existed is found again.
    fields = [value for name, value in named.items() if name not in CONDITIONS or value not in ("", None)]
    told = "-".join(_UNFIT.sub("-", str(value)) for value in fields)[:100]
    return Path(f"{told}-{hashlib.blake2b(repr(fields).encode(), digest_size=3).hexdigest()}.jsonl")
