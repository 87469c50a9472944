"""A real language model as the solver in the benchmark."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.hospital_stage import CODED, questions_of, records_of
from cascade_memory.evaluation.bench.household_stage import LIMITS, OFFICIAL, STEPS, games_of, has_official_games
from cascade_memory.evaluation.bench.names import has_a_model
from cascade_memory.evaluation.bench.plan import CONDITIONS, Run
from cascade_memory.evaluation.bench.science_stage import experiments_of, is_published
from cascade_memory.evaluation.bench.stage import Folders, Stage, data_differs, embedded, in_order
from cascade_memory.evaluation.model.acting import ActingSolver, Scene
from cascade_memory.evaluation.model.asking import Asking, Prices
from cascade_memory.evaluation.model.chat import Chat, Prompt, check_form, declared_form
from cascade_memory.evaluation.model.coding import CodeSolver
from cascade_memory.evaluation.model.model_solver import ModelSolver, Show, messages_for, truths_of
from cascade_memory.evaluation.model.scenes import HouseholdScene, ScienceScene
from cascade_memory.evaluation.search.settings import Searching
from cascade_memory.evaluation.stream import Solver
from cascade_memory.evaluation.tasks.catalogue import recurs
from cascade_memory.evaluation.tasks.task import Item, Task
from cascade_memory.ports import Embedder

_UNFIT = re.compile(r"[^\w.=+-]+")


@runtime_checkable
class KeepsLog(Protocol):
    """A judge that itself asks a model.

    This stands for ``ModelJudge``, which imports this package and so cannot be imported here.
    """

    def keep_log(self, path: Path) -> Asking | None:
        """Log the judge's requests from now on, and return the ``Asking`` that sends them."""
        ...


@runtime_checkable
class KeepsOutcomes(Protocol):
    """A chat model that stores outcomes of tasks.

    This stands for ``Outcomes``, which imports this module and so cannot be imported here.
    """

    def watched(self, solver: Solver, task: str, queries: Sequence[str], show: Show) -> Solver:
        """Return the solver in a form that also stores the outcome of each attempt."""
        ...


@runtime_checkable
class Differs(Protocol):
    """A scene whose tasks may differ from the paper's."""

    @property
    def differs(self) -> str:
        """How the tasks of the scene differ from the paper's, in words; an empty text if they are the same."""
        ...


@runtime_checkable
class HasSplits(Protocol):
    """A scene whose tasks are of several splits."""

    @property
    def splits(self) -> Sequence[str] | None:
        """The split of each task; None if they are not split."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A chat model that solves the tasks; its requests and replies are logged beside the rows, and used again after a crash."""

    chat: Chat
    prices: Prices | None = None
    thinks: bool = True  # whether it writes a thought before each action in an environment (ReAct)
    show: Show = "text"  # or "turns": how it sees the cases, but for tasks that are solved by code or search
    prompt: Prompt = "chat"  # or "authors": everything in one message of the user, but for calls of tools
    searching: Searching = field(default_factory=Searching)  # how it searches in deep search, and who judges its answers there

    def __post_init__(self) -> None:
        if not has_a_model(self.name):
            raise InvalidInput(f"the name {self.name!r} is that of a solver without a model: give the model another name")
        check_form(self.prompt, self.show)

    @property
    def name(self) -> str:
        """The name of the solver in rows."""
        return self.chat.name

    @property
    def declared(self) -> Mapping[str, Any]:
        """The sampling settings, and the other settings that differ from the defaults, as a row stores them."""
        chosen = {**({} if self.thinks else {"thinks": False}), **declared_form(self.prompt, self.show)}
        return {**self.chat.settings, **chosen, **self.searching.declared}

    def stage(self, task: Task, run: Run, folders: Folders) -> Stage:
        """Build the stage (see ``bench.stage.Stage``): the task's stream with this solver."""
        stream, embedder = embedded(task, run.limit, folders.data, folders.model(run, "embedder"))
        items = in_order(stream, run)
        asking = self._asking(run, folders)
        judge, log = getattr(task, "judge", None), _log(run, folders)
        judging = judge.keep_log(log.with_name(f"judge-{log.name}")) if isinstance(judge, KeepsLog) else None
        queries = [item.query for item in items]
        return Stage(
            queries=queries,
            solver=self._watched(ModelSolver(task, items, asking, show=self.show), run, queries),
            embedder=embedder,
            declared=self.declared,
            solutions=truths_of(task, items),
            recurring=recurs(task),
            account=lambda: {
                **asking.account(),
                **_of_the_judge(judging),
                **_wording(task, items),
                **data_differs(run, folders),
            },
        )

    def _asking(self, run: Run, folders: Folders) -> Asking:
        return Asking(self.chat, log=_log(run, folders), prices=self.prices, prompt=self.prompt)

    def _watched(self, solver: Solver, run: Run, queries: Sequence[str]) -> Solver:
        return self.chat.watched(solver, run.task, queries, self.show) if isinstance(self.chat, KeepsOutcomes) else solver

    def stage_in_world(self, run: Run, folders: Folders) -> Stage:
        """Build the stage: tasks in an environment, or tasks solved by search or by code, with this model as the agent."""
        if run.task == "2wiki":
            from cascade_memory.evaluation.search.stage import searching_stage  # it imports this package

            asking = self._asking(run, folders)
            stage = searching_stage(asking, self.searching, self.declared, run, folders)
            return dataclasses.replace(stage, solver=self._watched(stage.solver, run, stage.queries))
        if run.task in CODED:
            return self._coding(run, folders)
        scene, queries, kinds, embedder = scene_for(run, folders)
        differs = {"differs": scene.differs} if isinstance(scene, Differs) else {}
        asking = self._asking(run, folders)
        return Stage(
            queries=queries,
            solver=self._watched(ActingSolver(scene, asking, thinks=self.thinks, show=self.show), run, queries),
            embedder=embedder,
            declared=self.declared,
            kinds=kinds,
            splits=scene.splits if isinstance(scene, HasSplits) else None,
            account=lambda: {**asking.account(), **differs},
            close=scene.close,
        )

    def _coding(self, run: Run, folders: Folders) -> Stage:
        """Build the stage: questions about health records, which this model answers by code."""
        questions, embedder = questions_of(run, folders)
        records = records_of(run, folders)
        asking = self._asking(run, folders)
        kinds, queries = [one.kind for one in questions], [one.text for one in questions]
        difficulties = [one.difficulty for one in questions]
        return Stage(
            queries=queries,
            solver=self._watched(CodeSolver(questions, records, asking), run, queries),
            embedder=embedder,
            declared=self.declared,
            kinds=kinds if all(kinds) else None,
            splits=difficulties if all(difficulties) else None,
            account=lambda: {**asking.account(), **data_differs(run, folders)},
            close=records.close,
        )


def _log(run: Run, folders: Folders) -> Path:
    return folders.work / "requests" / log_name(run)


def _wording(task: Task, items: Sequence[Item]) -> dict[str, Any]:
    """Hash what a model is told about the first task, so that rows of differently worded prompts are not mixed."""
    told = [messages_for(task, item, ()) for item in items[:1]]
    return {"wording": hashlib.blake2b(json.dumps(told).encode(), digest_size=8).hexdigest()}


def _of_the_judge(judging: Asking | None) -> dict[str, Any]:
    return {} if judging is None else {f"judge_{name}": value for name, value in judging.account().items()}


Scenery: TypeAlias = tuple[Scene, list[str], list[str], Embedder]  # and the queries and kinds of its tasks, in order


def _science(run: Run, folders: Folders) -> Scenery:
    tasks, embedder = experiments_of(run, folders)
    differs = "" if is_published(folders) else "other tasks, drawn from the same variations"
    return ScienceScene(tasks, differs), [task.text for task in tasks], [task.place.kind for task in tasks], embedder


def _household(run: Run, folders: Folders) -> Scenery:
    games, embedder = games_of(run, folders)
    official = run.task == OFFICIAL and has_official_games(folders)
    differs = "" if official else "generated games, not ALFWorld's own, so that scores do not compare with the paper's"
    scene = HouseholdScene(games, LIMITS.get(run.task, STEPS), differs)
    return scene, [game.query for game in games], [game.kind for game in games], embedder


_SCENES: Mapping[str, Callable[[Run, Folders], Scenery]] = {
    "scienceworld": _science,
    **dict.fromkeys((*LIMITS, OFFICIAL), _household),
}


def scene_for(run: Run, folders: Folders) -> Scenery:
    """Return the environment of a run, with its tasks."""
    return _SCENES[run.task](run, folders)


def log_name(run: Run) -> Path:
    """Build a readable and unique file name for the log of a run.

    >>> log_name(Run("banking77", "CASCADE, k = 2", 0, solver="Qwen/Qwen3-32B")).name
    'banking77-CASCADE-k-=-2-0-None-Qwen-Qwen3-32B--f8264d.jsonl'
    """
    named = asdict(run)
    # Conditions, models and an order are part of the name only if there are any, so that older logs are still found.
    fields = [
        value
        for name, value in named.items()
        if name not in (*CONDITIONS, "models", "order", "attack", "layers", "settings") or value not in ("", None)
    ]
    name = "-".join(_UNFIT.sub("-", str(value)) for value in fields)[:100]
    return Path(f"{name}-{hashlib.blake2b(repr(fields).encode(), digest_size=3).hexdigest()}.jsonl")
