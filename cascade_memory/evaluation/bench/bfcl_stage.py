"""The stage (``stage.Stage``) of BFCL's multi-turn tasks: an agent reuses calls, and is judged by what they changed."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cascade_memory.evaluation.bench.plan import ALONE_REUSE, ASIDE, Run
from cascade_memory.evaluation.bench.stage import Folders, Stage, best_embedder, order_of, solved_alone
from cascade_memory.evaluation.environments.bfcl.tasks import KINDS, BFCLTask, installed_tasks
from cascade_memory.evaluation.reuse.bfcl import BFCLAgent
from cascade_memory.evaluation.stream import PrecomputedEmbedder
from cascade_memory.redaction import redact_secrets

# The kinds of tasks in each stream, in the order of the files.
BFCL = {"bfcl": tuple(KINDS), "bfcl-twins": ("base", "miss_param", "miss_func"), "bfcl-base": ("base",)}
SET_ASIDE = 60  # base tasks with which the agent was developed; neither on them nor on their twins methods are compared
_NUMBERS = 200  # base tasks; each has a twin of each other kind, with the same number


def tasks_of(stream: str, *, aside: bool) -> list[BFCLTask]:
    """Return the tasks of a stream in its own order; with ``aside``, those with which the agent was developed."""
    developed = set(np.random.default_rng(5).permutation(_NUMBERS)[:SET_ASIDE].tolist())
    return [task for kind in BFCL[stream] for task in installed_tasks(kind) if (task.number in developed) is aside]


def query_of(task: BFCLTask) -> str:
    """Build the query for the memory: what the user says in each turn, without passwords, which no memory would keep."""
    return redact_secrets(task.query)


@lru_cache(maxsize=2)
def embedded(stream: str, aside: bool, limit: int | None, model: str) -> tuple[list[BFCLTask], PrecomputedEmbedder]:
    """Load the tasks and the vectors of their queries, once per process; ``model`` is the folder of the embedder."""
    tasks = tasks_of(stream, aside=aside)[:limit]
    return tasks, PrecomputedEmbedder(best_embedder(model), [query_of(task) for task in tasks])


def bfcl_stage(run: Run, folders: Folders) -> Stage:
    """Build the stage: the tasks in the order of the seed, and the agent."""
    stream, embedder = embedded(run.task, run.solver == ASIDE, run.limit, folders.model(run, "embedder"))
    tasks = [stream[i] for i in order_of(len(stream), run.seed, run.order)]
    alone = solved_alone(run, len(tasks))
    return Stage(
        queries=[query_of(task) for task in tasks],
        solver=BFCLAgent(tasks, alone=alone),
        embedder=embedder,
        declared={"alone": ALONE_REUSE},
        truths=[task.solution for task in tasks],
        alone=alone,
        kinds=[KINDS[task.kind] for task in tasks],
    )
