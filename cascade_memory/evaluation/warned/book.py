"""Keeps what the benchmark itself knows of a run's failures, in the same way in every arm, whatever the memory does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory import FailureWarning, Step, Trajectory
from cascade_memory.capabilities import warnings as mistakes
from cascade_memory.evaluation.warned.listening import Act

_NEAR, _ALIKE = 16, 0.3  # solved tasks that a failure is compared with, and the least cosine to them: as the memory has it


@dataclass(frozen=True, slots=True)
class Blamed:
    """The mistake of a failed attempt, and whether it was known when the task began."""

    mistake: mistakes.Blame
    known: bool


class Book:
    """The mistakes and the solved tasks of a run so far."""

    def __init__(self) -> None:
        self.known: dict[str, mistakes.Blame] = {}  # by the group of the mistake
        self._solved: list[mistakes.Solved] = []
        self._vectors: list[NDArray[np.float32]] = []

    def note(self, query: str, vector: NDArray[np.float32], done: Trajectory | None, *, success: bool) -> Blamed | None:
        """Note how a task ended; return the mistake of a failed attempt, if a step can be blamed."""
        if done is None:
            return None
        if success:
            self._solved.append(mistakes.Solved(case=None, query=query, run=done))
            self._vectors.append(vector)
            return None
        mistake = mistakes.blamed_step(query, done, self._near(vector))
        if mistake is None:
            return None
        known = mistake.group in self.known
        self.known.setdefault(mistake.group, mistake)
        return Blamed(mistake, known)

    def is_made_again(self, done: Trajectory | None) -> bool:
        """Say whether an attempt made a known mistake: an action that failed before failed again, whatever step is blamed."""
        calls = [] if done is None else [mistakes.Call(step) for step in done.steps]
        known = [mistakes.Mistake(one) for one in self.known.values()] if calls else []
        return any(call.step.failed and mistake.is_repeated(call) for mistake in known for call in calls)

    def is_meant(self, warning: FailureWarning, act: Act) -> bool:
        """Say whether an action is the mistake that a warning is about."""
        mistake = self._words(warning)
        step = Step(action=act.action, tool=act.tool, arguments=act.arguments or {})
        return mistake is not None and mistakes.Mistake(mistake).is_repeated(mistakes.Call(step))

    def is_contradicted(self, warning: FailureWarning, task: NDArray[np.float32], its_task: NDArray[np.float32]) -> bool:
        """Say whether the action of a warning has worked on a task that is clearly more similar than the warning's own task.

        Both are compared with the present task, ``task``; ``its_task`` is the warning's own task.
        """
        blamed = self._words(warning)
        if blamed is None or blamed.why == "refused":
            return False
        mistake, enough = mistakes.Mistake(blamed), float(task @ its_task) + mistakes.CLEARLY
        return any(
            cosine >= enough and not one.failed and mistake.is_repeated(mistakes.Call(one))
            for cosine, solved in self._nearest(task)
            for one in solved.run.steps
        )

    def _near(self, vector: NDArray[np.float32]) -> list[mistakes.Solved]:
        return [solved for cosine, solved in self._nearest(vector) if cosine >= _ALIKE]

    def _nearest(self, vector: NDArray[np.float32]) -> list[tuple[float, mistakes.Solved]]:
        if not self._solved:
            return []
        cosines = np.stack(self._vectors) @ vector
        return [(float(cosines[i]), self._solved[i]) for i in np.argsort(-cosines, kind="stable")[:_NEAR].tolist()]

    def _words(self, warning: FailureWarning) -> mistakes.Blame | None:
        """Return the mistake of a warning, with the words by which the memory's own check recognises it."""
        return self.known.get(warning.id) or _again(warning)


def _again(warning: FailureWarning) -> mistakes.Blame | None:
    """Blame the step of a warning once more, to get the words of the mistake."""
    step = Step(action=warning.action, tool=warning.tool, observation=warning.happened, failed=True)
    return mistakes.blamed_step(warning.query, Trajectory([step]))
