"""One memory, one solver, one stream: test before train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.evaluation.solver import Attempt, Solver
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

    attempt: Attempt
    shown: bool


class Deliver(Protocol):
    """Brings the outcome of a task to the memory."""

    def __call__(self, memory: Memory, episode_id: str, place: int, attempt: Attempt) -> None:
        """Reward the memory now, later or not at all."""
        ...


def at_once(memory: Memory, episode_id: str, place: int, attempt: Attempt, *, said: bool | None = None) -> None:
    """Reward a memory with the outcome of a task; ``said`` is what the reward says instead of the truth."""
    del place
    success = attempt.success if said is None else said
    # Only a memory that keeps failures as well will show this one: whoever reads it is told.
    failed = None if success else {"solved": False}
    memory.reward(episode_id, success, solution=attempt.answer, metadata=failed)


def play(memory: Memory | None, query: str, solver: Solver, place: int, deliver: Deliver = at_once) -> Step:
    """Let the solver attempt a task with what the memory recalls, and reward the memory with the outcome."""
    if memory is None:
        return Step(solver.attempt(place, ()), shown=False)
    recall = memory.recall(query)
    attempt = solver.attempt(place, recall.cases)
    deliver(memory, recall.episode_id, place, attempt)
    return Step(attempt, shown=bool(recall.cases))
