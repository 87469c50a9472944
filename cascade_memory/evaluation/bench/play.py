"""Play one run: test before train, one reward a task."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from cascade_memory.evaluation.bench.human import HUMAN, HelpedPlay, Human
from cascade_memory.evaluation.bench.methods import open_memory
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.stage import Folders, Stage, Staging
from cascade_memory.evaluation.bench.stages import stage_for
from cascade_memory.evaluation.stream import Step
from cascade_memory.evaluation.stream import play as play_task
from cascade_memory.memory.memory import Memory


def play(run: Run, folders: Folders, staged: Staging = stage_for) -> dict[str, Any]:
    """Return the row of a run. All of it but the times is the same whenever the same run is played.

    ``success``, ``shown``, ``fitting``, ``covered`` and ``alone`` have a character per task, in the order in which they were
    played: was it solved, was a case shown, was its solution the right one, was a case with the right solution there at all,
    would it have been solved without. Where nobody can know, they are empty.
    """
    stage = staged(run, folders)
    human = HUMAN.get(run.method)
    memory = open_memory(run.method if human is None else human.method, stage.embedder, run.options)
    try:
        helped = None if human is None or memory is None else HelpedPlay(human, stage, memory, run.seed)
        steps, spent = _steps(stage, memory, helped)
        success = [step.attempt.success for step in steps]
        kept = success if memory is not None else [False] * len(steps)  # whose solutions became cases
        return {
            **asdict(run),
            "declared": dict(stage.declared),
            "stream": hashlib.blake2b(json.dumps(list(stage.queries)).encode(), digest_size=8).hexdigest(),
            "embedder": stage.embedder.identity,
            "n": len(steps),
            "rate": float(np.mean(success)),
            "success": _text(success),
            "shown": _text(step.shown for step in steps),
            "fitting": "" if stage.solutions is None else _text(bool(step.attempt.fitting) for step in steps),
            "covered": "" if stage.solutions is None else _covered(stage.solutions, kept, human),
            "alone": "" if stage.alone is None else _text(stage.alone),
            "kinds": None if stage.kinds is None else _by_kind(stage, success),
            "steps_per_task": float(np.mean([step.attempt.steps for step in steps])),
            "cases": 0 if memory is None else memory.stats().cases,
            "ms_per_task": 1000 * float(np.median(spent)),
            "seconds": sum(spent),
            **stage.account(),
            **({} if helped is None else helped.account()),
        }
    finally:
        if memory is not None:
            memory.close()
        stage.close()


def _steps(stage: Stage, memory: Memory | None, helped: HelpedPlay | None) -> tuple[list[Step], list[float]]:
    steps: list[Step] = []
    spent: list[float] = []
    for place, query in enumerate(stage.queries):
        began = time.perf_counter()
        steps.append(helped(query, place) if helped is not None else play_task(memory, query, stage.solver, place))
        spent.append(time.perf_counter() - began)
    return steps, spent


def _covered(solutions: Sequence[str], kept: Sequence[bool], human: Human | None) -> str:
    revised = human is not None and human.asked_by is None  # then every solution is kept
    known: set[str] = set()
    covered: list[bool] = []
    for solution, solved in zip(solutions, kept, strict=True):
        covered.append(solution in known)
        if solved or revised:
            known.add(solution)
    return _text(covered)


def _by_kind(stage: Stage, success: Sequence[bool]) -> dict[str, list[float | None]]:
    """Return for each kind how many tasks there were, how many of them were solved, and of those not solved alone."""
    told: dict[str, list[float | None]] = {}
    kinds, alone = stage.kinds or (), stage.alone or [False] * len(success)
    for kind in sorted(set(kinds)):
        places = [place for place, one in enumerate(kinds) if one == kind]
        left = [success[place] for place in places if not alone[place]]
        told[kind] = [len(places), float(np.mean([success[place] for place in places])), float(np.mean(left)) if left else None]
    return told


def _text(values: Iterable[bool]) -> str:
    return "".join("01"[value] for value in values)
