"""The streams on which warnings are compared, each with its agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cascade_memory import RecalledCase
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench import science_stage, sql_stage
from cascade_memory.evaluation.bench.household_stage import LIMITS, games_of
from cascade_memory.evaluation.bench.plan import ASIDE, Run
from cascade_memory.evaluation.bench.stage import Folders, best_embedder, order_of, solved_alone
from cascade_memory.evaluation.reuse.sql_agent import SQLAgent, query_of
from cascade_memory.evaluation.stream import Attempt, PrecomputedEmbedder
from cascade_memory.evaluation.warned.household import Household
from cascade_memory.evaluation.warned.listening import Listener
from cascade_memory.evaluation.warned.science import Science
from cascade_memory.evaluation.warned.sql import SQL


class Agent(Protocol):
    """Attempts the tasks of a stream, and listens to warnings."""

    def attempt(self, place: int, cases: Sequence[RecalledCase], listener: Listener) -> Attempt:
        """Attempt the task at this place of the stream with the recalled cases, the best first."""
        ...

    def close(self) -> None:
        """End what the agent has started."""
        ...


@dataclass(frozen=True, slots=True)
class WarnedStage:
    """The tasks in the order of play, and their agent."""

    queries: Sequence[str]
    agent: Agent
    embedder: PrecomputedEmbedder
    alone: Sequence[bool]


def warned_stage(run: Run, folders: Folders) -> WarnedStage:
    """Build the stage of a run; call the agent's ``close`` afterwards."""
    if run.task not in _MADE:
        raise InvalidInput(f"there is no agent that listens for {run.task!r}; there is one for {', '.join(_MADE)}")
    return _MADE[run.task](run, folders)


def _science(run: Run, folders: Folders) -> WarnedStage:
    stream, embedder = science_stage.embedded(run.solver, folders.work, run.limit, folders.model(run, "embedder"))
    tasks = [stream[i] for i in order_of(len(stream), run.seed, run.order)]
    alone = solved_alone(run, len(tasks))
    agent = Science(tasks, alone=alone, embedder=best_embedder(), answers=folders.work / "scienceworld-answers.sqlite")
    return WarnedStage([task.text for task in tasks], agent, embedder, alone)


def _household(run: Run, folders: Folders) -> WarnedStage:
    games, embedder = games_of(run, folders)
    alone = solved_alone(run, len(games))
    agent = Household(games, alone=alone, limit=LIMITS[run.task], answers=folders.work / "household-answers.sqlite")
    return WarnedStage([game.query for game in games], agent, embedder, alone)


def _sql(run: Run, folders: Folders) -> WarnedStage:
    model = folders.model(run, "embedder")
    task, stream, embedder = sql_stage.embedded(run.task, run.solver == ASIDE, run.limit, folders.data, model)
    items = [stream[i] for i in order_of(len(stream), run.seed, run.order)]
    alone = solved_alone(run, len(items))
    agent = SQL(SQLAgent(task, items, alone=alone, strength="full"), alone=alone)
    return WarnedStage([query_of(item) for item in items], agent, embedder, alone)


_MADE: dict[str, Callable[[Run, Folders], WarnedStage]] = {
    "scienceworld": _science,
    **dict.fromkeys(LIMITS, _household),
    "spider": _sql,
}
