"""One memory, one solver, one stream: test before train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.evaluation.solver import SimulatedSolver
from cascade_memory.memory.memory import Memory
from cascade_memory.ports.embedder import Embedder


class PrecomputedEmbedder:
    """An embedder's vectors of a known set of texts, computed once: for running many memories over one stream."""

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        distinct = list(dict.fromkeys(texts))
        self._rows = {text: row for row, text in enumerate(distinct)}
        self._vectors = embedder.embed(distinct)
        self.identity, self.dimension = embedder.identity, embedder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Look the vectors up."""
        return self._vectors[[self._rows[text] for text in texts]]


@dataclass(frozen=True, slots=True)
class Step:
    """What happened in one episode."""

    success: bool
    shown: bool
    fitting: bool  # the shown case had the right solution


def play(memory: Memory | None, query: str, solver: SimulatedSolver, task: int) -> Step:
    """Let the solver attempt a task with what the memory recalls, and reward the memory with the outcome.

    Of several cases the solver takes the right one if it is there: kinder to many cases than a real one would be.
    """
    if memory is None:
        return Step(solver.solve(task, None).success, shown=False, fitting=False)
    recall = memory.recall(query)
    solutions = [str(case.solution) for case in recall.cases]
    shown = next((one for one in solutions if solver.is_right(task, one)), solutions[0] if solutions else None)
    attempt = solver.solve(task, shown)
    memory.reward(recall.episode_id, attempt.success, solution=attempt.answer)
    return Step(attempt.success, shown=shown is not None, fitting=shown is not None and solver.is_right(task, shown))
