"""The stage (``stage.Stage``) of experiments in ScienceWorld, with an agent that reuses trajectories."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from cascade_memory.evaluation.bench.plan import ALONE_REUSE, ASIDE, Run
from cascade_memory.evaluation.bench.stage import Folders, Stage, best_embedder, order_of, solved_alone
from cascade_memory.evaluation.environments.scienceworld_tasks import ScienceTask, science_tasks
from cascade_memory.evaluation.environments.scienceworld_whole import PUBLISHED, Start, drawn_starts, published_starts
from cascade_memory.evaluation.reuse.scienceworld import ScienceAgent, Strength
from cascade_memory.evaluation.stream import PrecomputedEmbedder


def prepare_science(run: Run, folders: Folders) -> None:
    """Make as many tasks of the stream as the run plays, unless this is already done."""
    if run.solver.startswith("reuse"):
        _solved(run.solver, run.limit, folders.work)
    else:
        _starts(run.limit, folders)


def _solved(solver: str, limit: int | None, work: Path) -> list[ScienceTask]:
    aside = solver == ASIDE
    file = work / ("scienceworld-aside.jsonl" if aside else "scienceworld.jsonl")
    tasks = science_tasks(file, limit=limit, for_development=aside)
    return tasks if limit else [tasks[i] for i in np.random.default_rng(3).permutation(len(tasks))]


@lru_cache(maxsize=1)
def embedded(solver: str, work: Path, limit: int | None, model: str) -> tuple[list[ScienceTask], PrecomputedEmbedder]:
    """Load the stream of tasks with known solutions and their vectors; both are cached for later runs."""
    tasks = _solved(solver, limit, work)
    return tasks, PrecomputedEmbedder(best_embedder(model), [task.text for task in tasks])


def _starts(limit: int | None, folders: Folders) -> list[Start]:
    published = published_starts(folders.data)
    return drawn_starts(folders.work / "scienceworld-whole.jsonl", limit=limit) if published is None else published[:limit]


@lru_cache(maxsize=1)
def whole_stream(folders: Folders, limit: int | None, model: str) -> tuple[list[Start], PrecomputedEmbedder]:
    """Load the stream of ``scienceworld_whole`` and the vectors of its texts; both are cached for later runs."""
    starts = _starts(limit, folders)
    return starts, PrecomputedEmbedder(best_embedder(model), [start.text for start in starts])


def experiments_of(run: Run, folders: Folders) -> tuple[list[Start], PrecomputedEmbedder]:
    """Return the stream of ``scienceworld_whole``, which a model plays, in the order of the seed, and the vectors of its texts.

    The stream is the paper's own if the folder of data holds it. Otherwise it is drawn here in the same way.
    """
    stream, embedder = whole_stream(folders, run.limit, folders.model(run, "embedder"))
    return [stream[i] for i in order_of(len(stream), run.seed, run.order)], embedder


def is_published(folders: Folders) -> bool:
    """Say whether the folder of data holds the paper's own stream, which a model then plays."""
    return (folders.data / PUBLISHED).is_file()


def science_stage(run: Run, folders: Folders) -> Stage:
    """Build the stage: the tasks with known solutions in the order of the seed, and the agent.

    If the run's solver is "reuse-map", the agent is the weaker one; see ``reuse.scienceworld.ScienceAgent``.
    """
    stream, embedder = embedded(run.solver, folders.work, run.limit, folders.model(run, "embedder"))
    tasks = [stream[i] for i in order_of(len(stream), run.seed, run.order)]
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
