"""Plays one run: each task is attempted before its outcome is learned, with one reward per task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.evaluation.bench.conditions import Rewards, WrongCases, wrong_cases
from cascade_memory.evaluation.bench.human import HUMAN, HelpedPlay, Human
from cascade_memory.evaluation.bench.methods import open_memory
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.rows import stream_of
from cascade_memory.evaluation.bench.stage import Folders, Stage, Staging
from cascade_memory.evaluation.bench.stages import stage_for
from cascade_memory.evaluation.bench.watching import Heartbeat, PeakMemory
from cascade_memory.evaluation.stream import Step
from cascade_memory.evaluation.stream import play as play_task
from cascade_memory.memory import Memory


def play(run: Run, folders: Folders, staged: Staging = stage_for, *, told: bool = False) -> dict[str, Any]:
    """Play a run and return its row. Except for the times, the row is the same whenever the same run is played.

    Five columns have a character per task, "1" or "0", in the order of play: ``success`` (the task was solved), ``shown`` (a
    case was shown), ``fitting`` (the solution of the shown case was right), ``covered`` (a stored case had the right solution)
    and ``alone`` (the task would have been solved without a case). A column is empty if its values are unknown; those of
    ``fitting`` and ``covered`` are known only where right solutions recur. ``success`` is the truth, even if the rewards are
    false.

    ``ranker_memory_gib`` is the peak memory of a reranker with its training: of the GPU, or else the growth of the process.
    ``steps`` lists how many steps each task took, unless each took one. With ``told``, a long run reports its progress now and
    then.
    """
    human = HUMAN.get(run.method)
    if human is not None and (run.rewards or run.wrong_cases):
        raise InvalidInput(f"{run.method!r} can only be played with true rewards that come at once, and without wrong cases")
    stage = staged(run, folders)
    method = run.method if human is None else human.method
    ranker, case_text = folders.model(run, "ranker"), stage.case_text
    peak = _peak_of_a_ranker() if ranker else None
    memory = open_memory(method, stage.embedder, run.options, ranker, case_text=case_text) if stage.remembers else None
    try:
        helped = None if human is None or memory is None else HelpedPlay(human, stage, memory, run.seed)
        rewards = Rewards(run.rewards, len(stage.queries), run.seed)
        wrong = _wrong_cases(run, stage)
        heart = Heartbeat(f"{run.task}, {run.method}, seed {run.seed}", len(stage.queries), on=told)
        steps, spent = _steps(stage, memory, wrong, helped or partial(_played, stage, memory, rewards), heart)
        if memory is not None:
            check_nothing_failed(memory, run.method)
        success, right = [step.attempt.success for step in steps], stage.solutions if stage.recurring else None
        return {
            **asdict(run),
            "declared": dict(stage.declared),
            "stream": stream_of(stage.queries),
            "embedder": stage.embedder.identity,
            "n": len(steps),
            "rate": float(np.mean(success)),
            "success": _text(success),
            "shown": _text(step.shown for step in steps),
            "fitting": "" if right is None else _text(bool(step.attempt.fitting) for step in steps),
            "covered": "" if right is None else _covered(right, _learned(steps, rewards, right, human), wrong),
            "alone": "" if stage.alone is None else _text(stage.alone),
            "kinds": None if stage.kinds is None else _by_kind(stage.kinds, stage.alone, success),
            "splits": None if stage.splits is None else _by_kind(stage.splits, stage.alone, success),
            "steps_per_task": float(np.mean([step.attempt.steps for step in steps])),
            "steps": _counts(steps),
            "cases": 0 if memory is None else memory.stats().cases,
            "ms_per_task": 1000 * float(np.median(spent)),
            "seconds": sum(spent),
            **({} if peak is None else {"ranker_memory_gib": peak.gib()}),
            **stage.account(),
            **({} if helped is None else helped.account()),
        }
    finally:
        if memory is not None:
            memory.close()
        stage.close()


def _peak_of_a_ranker() -> PeakMemory | None:
    """Begin to measure the memory that a reranker takes with its training: the libraries are loaded, its weights are not."""
    try:
        import torch
        import transformers  # noqa: F401 # pyright: ignore[reportUnusedImport]
    except ImportError:
        return None  # who opens the memory is told which extra is missing
    peak = PeakMemory(cuda=torch.cuda.is_available())
    peak.begin()
    return peak


def check_nothing_failed(memory: Memory, method: str) -> None:
    """Raise an error if the memory failed open: its row would be that of another method, such as plain similarity."""
    health = memory.health()
    if health.failures:
        counts = ", ".join(f"{step} {count} times" for step, count in sorted(health.failures.items()))
        why = f"the memory failed during the run ({counts}); last: {health.last_error}"
        raise CascadeError(f"{method!r} was not measured, since {why}")


def _wrong_cases(run: Run, stage: Stage) -> WrongCases:
    if not run.wrong_cases:
        return {}
    right = stage.solutions if stage.truths is None else stage.truths
    if right is None:
        raise InvalidInput(f"wrong cases need right solutions to mix up, and {run.task!r} with {run.solver!r} has none")
    return wrong_cases(run.wrong_cases, stage.queries, right, run.seed)


def _played(stage: Stage, memory: Memory | None, rewards: Rewards, query: str, place: int) -> Step:
    return play_task(memory, query, stage.solver, place, rewards)


def _steps(
    stage: Stage, memory: Memory | None, wrong: WrongCases, played: Callable[[str, int], Step], heart: Heartbeat
) -> tuple[list[Step], list[float]]:
    steps: list[Step] = []
    spent: list[float] = []
    solved = 0
    for place, query in enumerate(stage.queries):
        if memory is not None and place in wrong:
            memory.add(wrong[place], progress=False)
        began = time.perf_counter()
        steps.append(played(query, place))
        spent.append(time.perf_counter() - began)
        solved += steps[-1].attempt.success
        heart.beat(len(steps), solved=solved)
    return steps, spent


def _learned(steps: Sequence[Step], rewards: Rewards, solutions: Sequence[str], human: Human | None) -> list[list[str]]:
    """Compute for each task the solutions that were stored as cases after it."""
    if human is not None:
        revises = human.asked_by is None  # then every solution is stored
        return [[right] if revises or step.attempt.success else [] for step, right in zip(steps, solutions, strict=True)]

    def reported(task: int) -> str:
        return solutions[task] if steps[task].attempt.success else str(steps[task].attempt.answer)

    return [[reported(task) for task, says_solved in arrived if says_solved] for arrived in rewards.learned]


def _covered(solutions: Sequence[str], learned: Sequence[Sequence[str]], wrong: WrongCases) -> str:
    known: set[str] = set()
    covered: list[bool] = []
    for place, right in enumerate(solutions):
        known.update(solution for _, solution in wrong.get(place, ()))
        covered.append(right in known)
        known.update(learned[place])
    return _text(covered)


def _by_kind(kinds: Sequence[str], alone: Sequence[bool] | None, success: Sequence[bool]) -> dict[str, list[float | None]]:
    """Compute for each kind of task: the number of tasks, the share solved, and this share where a case was needed.

    A case was needed if the solver does not solve the task alone.
    """
    by_kind: dict[str, list[float | None]] = {}
    alone = alone or [False] * len(success)
    for kind in sorted(set(kinds)):
        places = [place for place, one in enumerate(kinds) if one == kind]
        left = [success[place] for place in places if not alone[place]]
        by_kind[kind] = [
            len(places),
            float(np.mean([success[place] for place in places])),
            float(np.mean(left)) if left else None,
        ]
    return by_kind


def _counts(steps: Sequence[Step]) -> list[int] | None:
    """Return the number of steps of each task; None if each took one, as in streams of texts."""
    counts = [step.attempt.steps for step in steps]
    return None if set(counts) <= {1} else counts


def _text(values: Iterable[bool]) -> str:
    return "".join("01"[value] for value in values)
