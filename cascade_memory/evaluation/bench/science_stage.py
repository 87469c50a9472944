"""ScienceWorld as a stage: experiments, with an agent that reuses trajectories."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from cascade_memory.evaluation.bench.plan import ALONE_REUSE, ASIDE, Run
from cascade_memory.evaluation.bench.stage import Folders, Stage, best_embedder, order_of, solved_alone
from cascade_memory.evaluation.environments.scienceworld_tasks import ScienceTask, science_tasks
from cascade_memory.evaluation.reuse.science_agent import ScienceAgent, Strength
from cascade_memory.evaluation.stream import PrecomputedEmbedder


def prepare_science(solver: str, folders: Folders) -> None:
    """Make the stream, unless this is already done."""
    _tasks(solver, folders.work)


def _tasks(solver: str, work: Path) -> list[ScienceTask]:
    aside = solver == ASIDE
    return science_tasks(work / ("scienceworld-aside.jsonl" if aside else "scienceworld.jsonl"), for_development=aside)


@lru_cache(maxsize=1)
def embedded(solver: str, work: Path, limit: int | None, model: str) -> tuple[list[ScienceTask], PrecomputedEmbedder]:
    """Load the stream of tasks and their vectors; both are cached for later runs."""
    tasks = _tasks(solver, work)
    tasks = [tasks[i] for i in np.random.default_rng(3).permutation(len(tasks))[:limit]]
    return tasks, PrecomputedEmbedder(best_embedder(model), [task.text for task in tasks])


def experiments_of(run: Run, folders: Folders) -> tuple[list[ScienceTask], PrecomputedEmbedder]:
    """Return the stream in the order of the seed, and the vectors of its queries."""
    stream, embedder = embedded(run.solver, folders.work, run.limit, folders.model(run, "embedder"))
    return [stream[i] for i in order_of(len(stream), run.seed)], embedder


def science_stage(run: Run, folders: Folders) -> Stage:
    """Build the stage: the stream in the order of the seed, and the agent ("reuse-map" is the weaker one)."""
    tasks, embedder = experiments_of(run, folders)
    alone = solved_alone(run, len(tasks))
    strength: Strength = "map" if run.solver == "reuse-map" else "full"
    agent = ScienceAgent(
        tasks,
        alone=alone,
        embedder=best_embedder(),
        outcomes=folders.work / f"scienceworld-{strength}.sqlite",
        strength=strength,
    )
    return Stage(
        queries=[task.text for task in tasks],
        solver=agent,
        embedder=embedder,
        declared={"alone": ALONE_REUSE, "agent": strength},
        alone=alone,
        kinds=[task.place.kind for task in tasks],
        close=agent.close,
    )
