"""What one figure of success hides: gain on new tasks, forgetting, transfer, and whether wrong rewards can be repaired."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.methods import open_memory
from cascade_memory.evaluation.bench.plan import REUSED, Run
from cascade_memory.evaluation.bench.play import check_nothing_failed
from cascade_memory.evaluation.bench.rows import Row, stream_of
from cascade_memory.evaluation.bench.stage import Folders, Stage
from cascade_memory.evaluation.bench.stages import stage_for
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.rivals.known import OTHER_MEMORIES
from cascade_memory.evaluation.stream import Attempt, at_once
from cascade_memory.memory import Memory

THEN = ", then "  # between the names of the two streams of a run
STREAMS = (f"llb-db{THEN}spider", f"spider{THEN}llb-db")
METHODS = (
    *("similarity", *OTHER_MEMORIES, "LinLogUCB", "Neural-LinUCB"),
    *("CASCADE untrained", "CASCADE, always a case", "CASCADE"),
)
SEEDS = 5
SET_ASIDE = 0.25  # of each stream: the share of the tasks from which nothing is learned
WRONG = 0.3  # the share of the rewards that are wrong at first
HEAD = ("memory", "success", "gain", "forgetting", "transfer", "wrong rewards", "repaired")


def runs(tasks: Sequence[str], methods: Sequence[str], seeds: int, limit: int | None = None) -> Iterator[Run]:
    """Yield the runs, seed by seed.

    >>> len(list(runs(STREAMS, METHODS, seeds=2))) == 2 * 2 * len(METHODS)
    True
    """
    for seed in range(seeds):
        for task in tasks:
            for method in methods:
                yield Run(task, method, seed, limit, solver="reuse")


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream in two parts: a memory learns from the first tasks, and the last ones are only asked."""

    stage: Stage
    learned: range
    asked: range

    @classmethod
    def of(cls, stage: Stage) -> _Stream:
        n = len(stage.queries)
        first = n - max(1, round(SET_ASIDE * n))
        return cls(stage, range(first), range(first, n))

    def learn(self, memory: Memory, wrong: Sequence[bool] = ()) -> tuple[str, list[tuple[str, Attempt]]]:
        """Play the first tasks; return their success, and the episodes whose reward was wrong, to correct them later."""
        solved: list[bool] = []
        mistaken: list[tuple[str, Attempt]] = []
        for place in self.learned:
            recall = memory.recall(self.stage.queries[place])
            attempt = self.stage.solver.attempt(place, recall.cases)
            # Nobody takes it for a success if there is no answer.
            is_wrong = bool(wrong) and wrong[place] and attempt.answer is not None
            at_once(memory, recall.episode_id, place, attempt, reported=attempt.success != is_wrong)
            solved.append(attempt.success)
            if is_wrong:
                mistaken.append((recall.episode_id, attempt))
        return _text(solved), mistaken

    def ask(self, memory: Memory | None) -> str:
        """Attempt the last tasks with what the memory knows; it does not hear how they end."""
        queries, solver = self.stage.queries, self.stage.solver
        shown = ((place, () if memory is None else memory.recall(queries[place]).cases) for place in self.asked)
        return _text([solver.attempt(place, cases).success for place, cases in shown])


def play(run: Run, folders: Folders) -> Row:
    """Play a run of two streams and return its row.

    A column has a character per task, "1" if it was solved: ``success`` (the tasks from which the memory learned), and tasks
    that were set aside: ``asked_alone`` (without a memory), ``asked`` (after the first stream), ``asked_later`` (after the
    second stream as well), ``asked_wrong`` (if 30 % of the rewards of the first stream are wrong), ``asked_repaired`` (after
    these were corrected), and the same of the second stream: ``other_alone``, and ``other`` (after the first stream only).
    """
    names = run.task.split(THEN)
    if len(names) != 2 or any(name not in REUSED for name in names):
        raise InvalidInput(f"measures need two streams of reuse agents, such as {STREAMS[0]!r}, not {run.task!r}")
    began = time.perf_counter()
    first, second = (_Stream.of(stage_for(_alone(run, name), folders)) for name in names)
    try:
        n = len(first.learned)
        wrong: list[bool] = (np.random.default_rng([run.seed, 13]).random(n) < WRONG).tolist()
        return {
            **asdict(run),
            "declared": dict(first.stage.declared),
            "stream": stream_of(first.stage.queries),
            "embedder": first.stage.embedder.identity,
            "n": n,
            **_one_after_the_other(run, first, second),
            **_repaired(run, first, wrong),
            "asked_alone": first.ask(None),
            "other_alone": second.ask(None),
            "seconds": time.perf_counter() - began,
        }
    finally:
        first.stage.close()
        second.stage.close()


def _alone(run: Run, name: str) -> Run:
    task, solver = REUSED[name]
    return replace(run, task=task, solver=solver)


def _opened(run: Run, stage: Stage) -> Memory:
    memory = open_memory(run.method, stage.embedder, run.options, case_text=stage.case_text)
    if memory is None:
        raise InvalidInput(f"{run.method!r} has no memory to measure")
    return memory


def _one_after_the_other(run: Run, first: _Stream, second: _Stream) -> dict[str, str]:
    memory = _opened(run, first.stage)
    try:
        success, _ = first.learn(memory)
        asked, other = first.ask(memory), second.ask(memory)
        second.learn(memory)
        later = first.ask(memory)
        check_nothing_failed(memory, run.method)
    finally:
        memory.close()
    return {"success": success, "asked": asked, "other": other, "asked_later": later}


def _repaired(run: Run, stream: _Stream, wrong: Sequence[bool]) -> dict[str, str]:
    memory = _opened(run, stream.stage)
    try:
        _, mistaken = stream.learn(memory, wrong)
        misled = stream.ask(memory)
        for episode, attempt in mistaken:
            memory.reward(episode, attempt.success, solution=attempt.answer, overwrite=True)
        repaired = stream.ask(memory)
        check_nothing_failed(memory, run.method)
    finally:
        memory.close()
    return {"asked_wrong": misled, "asked_repaired": repaired}


def measured(row: Mapping[str, Any]) -> dict[str, float]:
    """Compute the measures of a row, in percent and in points.

    * ``success``: of the tasks from which the memory learned.
    * ``gain``: of the tasks that were set aside, against no memory.
    * ``forgetting``: what the second stream takes from the first one's tasks; below zero it adds.
    * ``transfer``: to the second stream's tasks before anything was learned there, against no memory.
    * ``wrong rewards``: what they cost on the tasks that were set aside.
    * ``repaired``: what they still cost after they were corrected.

    >>> row = {"success": "0011", "asked_alone": "00", "asked": "11", "asked_later": "10", "asked_wrong": "00"}
    >>> row |= {"asked_repaired": "11", "other_alone": "01", "other": "11"}
    >>> measured(row)
    {'success': 50.0, 'gain': 100.0, 'forgetting': 50.0, 'transfer': 50.0, 'wrong rewards': 100.0, 'repaired': 0.0}
    """
    share = {name: 100.0 * str(row[name]).count("1") / len(str(row[name])) for name in _COLUMNS}
    return {
        "success": share["success"],
        "gain": share["asked"] - share["asked_alone"],
        "forgetting": share["asked"] - share["asked_later"],
        "transfer": share["other"] - share["other_alone"],
        "wrong rewards": share["asked"] - share["asked_wrong"],
        "repaired": share["asked"] - share["asked_repaired"],
    }


_COLUMNS = ("success", "asked", "asked_later", "asked_alone", "asked_wrong", "asked_repaired", "other", "other_alone")


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Make a line for each memory: the means of its measures over the orders, with half the width of their 95 % intervals."""
    lines: list[list[str]] = []
    for method in dict.fromkeys(row["method"] for row in rows):
        each = [measured(row) for row in rows if row["method"] == method]
        lines.append([method, *(_cell([one[name] for one in each], name) for name in HEAD[1:])])
    return lines


def _cell(values: Sequence[float], name: str) -> str:
    mean, half = interval(values)
    text = f"{mean:.1f}" if name == "success" else f"{mean:+.1f}"
    return text if np.isnan(half) else f"{text} ± {half:.1f}"


def _text(values: Sequence[bool]) -> str:
    return "".join("01"[value] for value in values)
