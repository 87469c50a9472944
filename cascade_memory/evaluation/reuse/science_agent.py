"""A solver for ScienceWorld without a language model: it solves a declared share alone, the rest by adapting a case."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cascade_memory import RecalledCase, Trajectory
from cascade_memory.evaluation.environments.scienceworld import ScienceWorld
from cascade_memory.evaluation.environments.scienceworld_tasks import ScienceTask
from cascade_memory.evaluation.reuse.outcomes import Outcome, Outcomes
from cascade_memory.evaluation.reuse.scienceworld import Experiment, Replay
from cascade_memory.evaluation.solver import Attempt
from cascade_memory.ports import Embedder

Strength = Literal["full", "map"]
_VERSION = "science-1"  # version of the agent: cached outcomes of other versions are not used


class ScienceAgent:
    """REUSE agent, no language model: it replays the best recalled case with its words mapped to the new task.

    ``alone`` says which tasks it solves without a case, as an LLM solves some without memory. If the environment refuses an
    object, the strength "full" tries the most similar one; it also reads thermometers. The strength "map" does neither.
    """

    def __init__(
        self, tasks: Sequence[ScienceTask], *, alone: Sequence[bool], embedder: Embedder, outcomes: Path, strength: Strength
    ) -> None:
        self._tasks, self._alone, self._strength = tasks, alone, strength
        self._outcomes = Outcomes(outcomes)
        self._world: ScienceWorld | None = None  # started when the first outcome is unknown

        @lru_cache(maxsize=20_000)
        def vector(name: str) -> NDArray[np.float32]:
            return embedder.embed([name])[0]

        def alike(one: str, other: str) -> float:
            return float(vector(one) @ vector(other))

        self._alike = alike
        self._about = f"{_VERSION} {strength} {embedder.identity}"

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a task with the first of the cases."""
        task = self._tasks[place]
        if self._alone[place]:
            return Attempt(True, task.solution, steps=len(task.solution.steps))
        if not cases or not isinstance(cases[0].solution, Trajectory):
            return Attempt(False, None, steps=0)
        outcome = self._replayed(task, cases[0].query, cases[0].solution)
        return Attempt(outcome.success, outcome.done, steps=len(outcome.done.steps) if outcome.done else 0)

    def _replayed(self, task: ScienceTask, query: str, solution: Trajectory) -> Outcome:
        depends_on = [self._about, task.place.kind, str(task.place.variation), query, solution.to_json()]
        known = self._outcomes.known(depends_on)
        if known is not None:
            return known
        if self._world is None:
            self._world = ScienceWorld()
        self._world.load(task.place)
        replay = Replay(
            self._world, self._alike, new=Experiment.of(task.text), limit=task.limit, repairs=self._strength == "full"
        )
        done = replay.play(Experiment.of(query), solution)
        outcome = Outcome(self._world.solved, done)
        self._outcomes.keep(depends_on, outcome)
        return outcome

    def close(self) -> None:
        """End the Java process."""
        self._outcomes.close()
        if self._world is not None:
            self._world.close()
