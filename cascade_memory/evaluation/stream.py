"""Plays a stream with a memory and a solver: each task is attempted before the memory learns from its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.encoders import TEXTS
from cascade_memory.evaluation.solver import Attempt, Solver
from cascade_memory.memory import Memory
from cascade_memory.ports import Embedder


class PrecomputedEmbedder:
    """Holds an embedder's vectors of all texts of a stream, so that many memories can be run over it quickly.

    Any other text is embedded when it is first asked for. A memory asks for one if it has replaced a secret: a password that a
    solution shows to be one is also taken out of the query of the case.
    """

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        distinct = list(dict.fromkeys([*texts, *TEXTS]))
        self._embedder = embedder
        self._vectors = dict(zip(distinct, embedder.embed(distinct), strict=True))
        self.identity, self.dimension = embedder.identity, embedder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Look up the vectors."""
        if others := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
            self._vectors.update(zip(others, self._embedder.embed(others), strict=True))
        return np.array([self._vectors[text] for text in texts], np.float32).reshape(len(texts), self.dimension)


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one episode."""

    attempt: Attempt
    shown: bool


class Deliver(Protocol):
    """Passes the outcome of a task to the memory."""

    def __call__(self, memory: Memory, episode_id: str, place: int, attempt: Attempt) -> None:
        """Reward the memory now, later or not at all."""
        ...


def at_once(memory: Memory, episode_id: str, place: int, attempt: Attempt, *, reported: bool | None = None) -> None:
    """Reward a memory with the outcome of a task; ``reported`` is what the reward says instead of the truth."""
    del place
    success = attempt.success if reported is None else reported
    # If the memory stores failures too, this case may be shown later; its metadata tells the solver that it failed.
    failed = None if success else {"solved": False}
    memory.reward(episode_id, success, solution=attempt.answer, metadata=failed)


def play(memory: Memory | None, query: str, solver: Solver, place: int, deliver: Deliver = at_once) -> Step:
    """Let the solver attempt a task with the recalled cases, and reward the memory with the outcome.

    Without a memory (None), the solver gets no cases.
    """
    if memory is None:
        return Step(solver.attempt(place, ()), shown=False)
    recall = memory.recall(query)
    attempt = solver.attempt(place, recall.cases)
    deliver(memory, recall.episode_id, place, attempt)
    return Step(attempt, shown=bool(recall.cases))
