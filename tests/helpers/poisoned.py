"""A stream of real texts with a poisoner in it, who is undone after a while."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cascade_memory import CascadeMemory, Retention
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.evaluation.bench.plan import ALONE, MISLED
from cascade_memory.evaluation.bench.stage import catalogued, order_of
from cascade_memory.evaluation.stream import PrecomputedEmbedder, SimulatedSolver
from cascade_memory.insight.stats import Receipt

HONEST, POISONER = "ann", "mallory"


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a run. ``honest`` and ``evicted`` count the honest cases before and after the poisoner was undone."""

    before: float  # success while the poisoner was there
    after: float  # success on the tasks that follow
    cases: int
    honest: tuple[int, int] = (0, 0)
    evicted: tuple[int, int] = (0, 0)
    receipt: Receipt | None = None


def play(
    data: Path,
    stream: str,
    seed: int,
    *,
    poison: float,
    undo: bool,
    each: int = 500,
    max_cases: int = 120,
    folder: Path | None = None,
) -> Played:
    """Play ``each`` tasks with a share of ``poison`` among the episodes, then as many without; ``undo`` it in between.

    The poisoner asks what honest people ask later on, and reports success with a wrong solution. It flips what it is shown.
    The honest tasks and the solver's draws depend on the seed alone.
    """
    items = catalogued(stream).items(data)
    order = [items[place] for place in order_of(len(items), seed)[: 2 * each]]
    embedder = PrecomputedEmbedder(HashingEmbedder(), [one.query for one in order])
    solver = SimulatedSolver([one.solution for one in order], zero_shot=ALONE[stream], misled=MISLED, seed=seed)
    rng = np.random.default_rng([seed, 99])
    attacks = rng.random(each) < poison / (1.0 - poison)
    with CascadeMemory(folder, embedder=embedder, learn="inline", retention=Retention(max_cases=max_cases)) as memory:

        def honest(place: int) -> bool:
            recall = memory.acting(actor=HONEST).recall(order[place].query)
            attempt = solver.attempt(place, recall.cases)
            recall.reward(attempt.success, solution=attempt.answer)
            return attempt.success

        before: list[bool] = []
        for place in range(each):
            if attacks[place]:
                aim = int(rng.integers(place, 2 * each))
                recall = memory.acting(actor=POISONER, channel="mcp").recall(order[aim].query)
                wrong = solver.wrong_answer(aim)
                flipped = any(case.solution == order[aim].solution for case in recall.cases)
                recall.reward(float(not flipped), solution=wrong)
            before.append(honest(place))
        counted, evicted, receipt = _honest(memory), len(memory.cases.expired(why="evicted")), None
        if undo:
            receipt = memory.forget(by_actor=POISONER)
        counts, left = (counted, _honest(memory)), (evicted, len(memory.cases.expired(why="evicted")))
        after = [honest(place) for place in range(each, 2 * each)]
        assert memory.health().ok, memory.health()
        return Played(float(np.mean(before)), float(np.mean(after)), len(memory), counts, left, receipt)


def _honest(memory: CascadeMemory) -> int:
    return sum(row.cases for row in memory.sources.all() if row.actor == HONEST)
