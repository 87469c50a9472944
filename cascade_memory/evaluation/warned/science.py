"""The agent for ScienceWorld that listens to warnings, and for which a refused action costs a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cascade_memory import RecalledCase, Step, Trajectory
from cascade_memory.evaluation.environments.scienceworld import UNKNOWN, Place, ScienceWorld
from cascade_memory.evaluation.environments.scienceworld_tasks import ScienceTask
from cascade_memory.evaluation.reuse.phrases import mapped_phrases, substituted
from cascade_memory.evaluation.reuse.scienceworld import Alike, Experiment, Replay, deeds, named
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.evaluation.warned.known_world import KnownWorld
from cascade_memory.evaluation.warned.listening import Act, Listener, from_the_declined
from cascade_memory.ports import Embedder

_VERSION = "science-warned-1"
T = TypeVar("T")


class RealScienceWorld(ScienceWorld):
    """ScienceWorld as a world that can be begun again: a place is the type of the task and its variation."""

    def begin(self, place: str) -> None:
        """Begin an experiment."""
        kind, _, variation = place.rpartition(" ")
        self.load(Place(kind, int(variation)))


class Science:
    """Replays a recalled experiment like a ``ScienceAgent`` of the strength "full", with two differences.

    First, an action that the world does not know costs a step. Second, the agent listens to warnings. If it solves a task
    alone, it plays the known solution, and listens to warnings there as well.
    """

    def __init__(self, tasks: Sequence[ScienceTask], *, alone: Sequence[bool], embedder: Embedder, answers: Path) -> None:
        self._tasks, self._alone = tasks, alone
        self._world = KnownWorld(answers, _VERSION, RealScienceWorld)

        @lru_cache(maxsize=20_000)
        def vector(name: str) -> NDArray[np.float32]:
            return embedder.embed([name])[0]

        self._alike: Alike = lambda one, other: float(vector(one) @ vector(other))

    def attempt(self, place: int, cases: Sequence[RecalledCase], listener: Listener) -> Attempt:
        """Attempt a task with the first of the cases."""
        task = self._tasks[place]
        case = cases[0] if cases and isinstance(cases[0].solution, Trajectory) else None
        if case is None and not self._alone[place]:
            return Attempt(False, None, steps=0)
        self._world.begin(f"{task.place.kind} {task.place.variation}")
        replay = _Listening(self._world, self._alike, Experiment.of(task.text), task.limit, listener)
        if self._alone[place]:
            done = replay.follow(task.solution)
        else:
            assert case is not None
            assert isinstance(case.solution, Trajectory)
            done = replay.play(Experiment.of(case.query), Trajectory(case.solution.steps))
        return Attempt(self._world.solved, done, steps=len(done.steps) if done else 0)

    def close(self) -> None:
        """Close the world."""
        self._world.close()


class _Listening(Replay):
    def __init__(self, world: KnownWorld, alike: Alike, new: Experiment, limit: int, listener: Listener) -> None:
        super().__init__(world, alike, new=new, limit=limit, repairs=True)
        self._listener = listener
        self._instead: set[str] = set()

    def play(self, old: Experiment, trajectory: Trajectory) -> Trajectory | None:
        worked = Trajectory([step for step in trajectory.steps if not step.failed] or trajectory.steps)
        phrases = mapped_phrases(old.task, self._new.task)
        self._carry_out(list(deeds(old, worked)), lambda deed: self._redo(deed, phrases), wait=True)
        return Trajectory(self._steps) if self._steps else None

    def follow(self, solution: Trajectory) -> Trajectory | None:
        """Do the actions of a known solution."""
        self._carry_out(solution.steps, lambda step: self._act(step.action), wait=False)
        return Trajectory(self._steps) if self._steps else None

    def _carry_out(self, plan: Sequence[T], do: Callable[[T], object], *, wait: bool) -> None:
        """Carry out a plan; if the agent has a last resort, carry out the plan again from where an action was declined."""

        def do_unless_ended(one: T) -> None:
            if not self._ended:
                do(one)

        rest = from_the_declined(plan, do_unless_ended, self._listener)
        self._wait(wait)
        if not self._ended and self._listener.last_resort() is not None:
            for one in rest:
                do_unless_ended(one)
            self._wait(wait)

    def _wait(self, wait: bool) -> None:
        if wait and not self._ended:
            self._act("wait1")  # some experiments are judged only after a moment

    def _act(self, action: str) -> bool:
        told = self._listener.before(Act(action, done=self._steps))
        if told is None:
            return super()._act(action)
        phrases = mapped_phrases(Experiment.of(told.query).task, self._new.task)
        own = named(substituted(told.instead.lower(), phrases))
        if own and own != action and own not in self._instead and self._listener.before(Act(own, done=self._steps)) is None:
            self._instead.add(own)
            return super()._act(own)
        return False

    def _refused(self, action: str) -> None:
        self._steps.append(Step(action, f"{UNKNOWN} matches that input.", failed=True))
