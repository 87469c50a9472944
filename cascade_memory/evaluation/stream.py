"""Plays a stream with a memory and a solver: each task is attempted before the memory learns from its outcome.

``SimulatedSolver`` stands in for a language model; its success rates are declared as parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory import RecalledCase
from cascade_memory.domain import Solution
from cascade_memory.encoders import TEXTS
from cascade_memory.memory import Memory
from cascade_memory.ports import Embedder


@dataclass(frozen=True, slots=True)
class Attempt:
    """A solver's answer, and whether it is right."""

    success: bool
    answer: Solution | None  # None: there is nothing to store as a case
    fitting: bool | None = None  # whether a shown case had the right solution; None: no case was shown, or it is unknown
    steps: int = 1  # number of actions or tool calls


class Solver(Protocol):
    """Attempts the tasks of a stream."""

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt the task at this place of the stream with the recalled cases, the best first."""
        ...


class SimulatedSolver:
    """SIMULATED, no language model: whether it solves a task is drawn once per task, from the seed.

    * alone, it succeeds with probability ``zero_shot``;
    * with a case whose solution is right, it succeeds with probability ``matched``;
    * with another case, it does as it would alone, except that with probability ``misled`` the case spoils a success.

    A wrong answer repeats the solution of the shown case if that is wrong; otherwise it is a random wrong solution.

    >>> solver = SimulatedSolver(["a", "b"], zero_shot=0.0, misled=0.5, seed=0)
    >>> solver.solve(0, shown="b")
    Attempt(success=False, answer='b', fitting=False, steps=1)
    """

    def __init__(self, labels: Sequence[str], *, zero_shot: float, misled: float, seed: int, matched: float = 0.97) -> None:
        rng = np.random.default_rng([seed, 1])
        n = len(labels)
        self._labels = labels
        self._alone = rng.random(n) < zero_shot
        self._matched = rng.random(n) < matched
        self._unspoiled = rng.random(n) >= misled
        distinct = sorted(set(labels))
        place = {label: i for i, label in enumerate(distinct)}
        away = rng.integers(1, max(2, len(distinct)), n)
        self._other = [distinct[(place[label] + int(step)) % len(distinct)] for label, step in zip(labels, away, strict=True)]

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a task. If any of the cases is right, the solver uses it; an LLM might not find it so reliably."""
        solutions = [str(case.solution) for case in cases]
        return self.solve(place, self._labels[place] if self._labels[place] in solutions else next(iter(solutions), None))

    def solve(self, task: int, shown: str | None) -> Attempt:
        """Attempt a task with the solution of a case, or without a case."""
        right, other = self._labels[task], self._other[task]
        if shown is None:
            success, wrong = bool(self._alone[task]), other
        elif shown == right:
            success, wrong = bool(self._matched[task]), other
        else:
            success, wrong = bool(self._alone[task] and self._unspoiled[task]), shown
        return Attempt(success, right if success else wrong, None if shown is None else shown == right)

    def is_right(self, task: int, solution: str) -> bool:
        """Say whether a solution is right for a task."""
        return solution == self._labels[task]

    def wrong_answer(self, task: int) -> str:
        """Choose a solution that is wrong for a task."""
        return self._other[task]


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
