"""Play one run: test before train, one reward a task."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.minilm import MiniLMEmbedder, is_installed
from cascade_memory.evaluation.bench.methods import open_memory
from cascade_memory.evaluation.bench.plan import ALONE, MATCHED, MISLED, Run
from cascade_memory.evaluation.solver import SimulatedSolver
from cascade_memory.evaluation.stream import PrecomputedEmbedder
from cascade_memory.evaluation.stream import play as play_task
from cascade_memory.evaluation.tasks.catalogue import task_named
from cascade_memory.evaluation.tasks.task import Item


@lru_cache(maxsize=2)
def _embedded(task: str, limit: int | None, data: Path) -> tuple[list[Item], PrecomputedEmbedder]:
    """Return a stream and the vectors of its queries, computed once per process."""
    items = task_named(task).items(data)[:limit]
    embedder = MiniLMEmbedder() if is_installed() else HashingEmbedder()
    return items, PrecomputedEmbedder(embedder, [item.query for item in items])


def play(run: Run, data: Path) -> dict[str, Any]:
    """Return the row of a run. All of it but the times is the same whenever the same run is played.

    ``success``, ``shown``, ``fitting`` and ``covered`` have a character per task, in the order in which they were played: was
    it solved, was a case shown, was its solution the right one, was a case with the right solution there at all.
    """
    stream, embedder = _embedded(run.task, run.limit, data)
    order = np.random.default_rng([run.seed, 7]).permutation(len(stream))
    if run.task == "lfd":
        order = np.arange(len(stream))  # a log is read as it was written
    items = [stream[i] for i in order]
    labels = [item.solution for item in items]
    solver = SimulatedSolver(labels, zero_shot=ALONE[run.task], misled=MISLED, matched=MATCHED, seed=run.seed)
    memory = open_memory(run.method, embedder)
    bits: dict[str, list[bool]] = {"success": [], "shown": [], "fitting": [], "covered": []}
    known: set[str] = set()
    spent: list[float] = []
    for place, item in enumerate(items):
        began = time.perf_counter()
        step = play_task(memory, item.query, solver, place)
        spent.append(time.perf_counter() - began)
        for name, values in bits.items():
            values.append(labels[place] in known if name == "covered" else getattr(step, name))
        if memory is not None and step.success:
            known.add(labels[place])
    if memory is not None:
        memory.close()
    return {
        **asdict(run),
        "alone": ALONE[run.task],
        "matched": MATCHED,
        "misled": MISLED,
        "embedder": embedder.identity,
        "n": len(items),
        "rate": float(np.mean(bits["success"])),
        **{name: _text(values) for name, values in bits.items()},
        "ms_per_task": 1000 * float(np.median(spent)),
    }


def _text(values: Sequence[bool]) -> str:
    return "".join("01"[value] for value in values)
