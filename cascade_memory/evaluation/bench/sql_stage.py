"""The stages (``stage.Stage``) of SQL: an agent reuses queries, and is judged by running the query that it writes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

import numpy as np

from cascade_memory.evaluation.bench.plan import ALONE_REUSE, ASIDE, Run
from cascade_memory.evaluation.bench.stage import (
    Folders,
    Stage,
    best_embedder,
    catalogued,
    in_order,
    order_of,
    solved_alone,
)
from cascade_memory.evaluation.bench.stage import embedded as embedded_stream
from cascade_memory.evaluation.reuse.sql_agent import SQLAgent, Strength, query_of
from cascade_memory.evaluation.reuse.tables_agent import TablesAgent
from cascade_memory.evaluation.stream import PrecomputedEmbedder
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE
from cascade_memory.evaluation.tasks.sql_task import SQLTask
from cascade_memory.evaluation.tasks.tables_task import TablesTask
from cascade_memory.evaluation.tasks.task import Item

SET_ASIDE = 60  # questions with which the agent was developed; no methods are compared on them


@cache
def embedded(
    name: str, aside: bool, limit: int | None, data: Path, model: str
) -> tuple[SQLTask, list[Item], PrecomputedEmbedder]:
    """Load the questions and their vectors. The task and its databases stay open until the process ends.

    With ``aside``, the questions are those with which the agent was developed; otherwise they are the others.
    """
    entry = CATALOGUE[name]
    assert entry.make is not None
    task = cast("SQLTask", entry.make(entry))
    items = task.items(data)
    order = np.random.default_rng(5).permutation(len(items))
    items = [items[i] for i in (order[:SET_ASIDE] if aside else order[SET_ASIDE:])[:limit]]
    return task, items, PrecomputedEmbedder(best_embedder(model), [query_of(item) for item in items])


def sql_stage(run: Run, folders: Folders) -> Stage:
    """Build the stage: the questions in the order of the seed, and the agent.

    If the run's solver is "reuse-map", the agent is the weaker one; see ``sql_agent.SQLAgent``.
    """
    model = folders.model(run, "embedder")
    task, stream, embedder = embedded(run.task, run.solver == ASIDE, run.limit, folders.data, model)
    items = [stream[i] for i in order_of(len(stream), run.seed, run.order)]
    alone = solved_alone(run, len(items))
    strength: Strength = "map" if run.solver == "reuse-map" else "full"
    agent = SQLAgent(task, items, alone=alone, strength=strength)
    return Stage(
        queries=[query_of(item) for item in items],
        solver=agent,
        embedder=embedder,
        declared={"alone": ALONE_REUSE, "agent": strength},
        truths=[item.solution for item in items],
        alone=alone,
        kinds=[str(item.fields["db_id"]) for item in items],
        close=agent.close,
    )


def tables_stage(run: Run, folders: Folders) -> Stage:
    """Build the stage of tasks that are each about a table of its own: all of them, and the agent."""
    task = cast("TablesTask", catalogued(run.task))
    stream, embedder = embedded_stream(task, run.limit, folders.data, folders.model(run, "embedder"))
    items = in_order(stream, run)
    alone = solved_alone(run, len(items))
    return Stage(
        queries=[item.query for item in items],
        solver=TablesAgent(task, items, alone=alone),
        embedder=embedder,
        declared={"alone": ALONE_REUSE, "agent": "form"},
        truths=[item.solution for item in items],
        alone=alone,
        kinds=[str(item.fields["kind"]) for item in items],
    )
