"""Solvers of tasks, and a simulated one: it replaces an LLM, and its success rates are declared as parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cascade_memory import RecalledCase
from cascade_memory.domain import Solution


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
