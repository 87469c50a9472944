"""A stream of experiments in ScienceWorld, each with a solution that was verified by playing it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cascade_memory import Step, Trajectory
from cascade_memory.domain import open_own
from cascade_memory.evaluation.environments.kept_lines import add_line, whole_lines
from cascade_memory.evaluation.environments.scienceworld import LIMITS, Place, ScienceWorld, room_of
from cascade_memory.memory import progress_bar

if TYPE_CHECKING:
    from typing_extensions import Self

SET_ASIDE = 40  # variations of each type that are reserved for developing agents and rankers; at most a third of the type
PER_KIND = 170  # largest number of variations of each type in the stream


@dataclass(frozen=True, slots=True)
class ScienceTask:
    """An experiment, the text that the agent sees at its beginning, and actions that solve it."""

    place: Place
    text: str
    solution: Trajectory

    @property
    def limit(self) -> int:
        """How many actions are allowed."""
        return LIMITS[self.place.kind]


def places(world: ScienceWorld, *, for_development: bool = False) -> list[Place]:
    """List the training variations of the stream, or those reserved for development; neither has test variations."""
    chosen: list[Place] = []
    for kind in LIMITS:
        variations = world.training_variations(kind)
        shuffled = [variations[i] for i in np.random.default_rng(len(kind)).permutation(len(variations))]
        aside = min(SET_ASIDE, len(shuffled) // 3)
        part = shuffled[:aside] if for_development else shuffled[aside : aside + PER_KIND]
        chosen.extend(Place(kind, variation) for variation in part)
    return chosen


def science_tasks(
    file: Path, *, limit: int | None = None, for_development: bool = False, progress: bool | None = None
) -> list[ScienceTask]:
    """Read the stream, or make it first, which takes about a second per task. With a limit, only so many tasks are made.

    Generated solutions differ each time, so they are stored. A variation is left out if its solution, played again, does not
    solve it. Without a limit, the tasks are in the order of ``places``; with one, they are drawn from all of these. With
    ``for_development``, the stream consists of the variations that are reserved for development.
    """
    with _Making(file, for_development=for_development) as making:
        every = making.places()
        drawn = every if limit is None else [every[i] for i in np.random.default_rng(3).permutation(len(every))]
        solved = (task for place in drawn if (task := making.task(place)) is not None)
        total = len(every) if limit is None else min(limit, len(every))
        return list(progress_bar(islice(solved, limit), "ScienceWorld", show=progress, total=total))


class _Making:
    """The tasks in a file; those that it lacks are made and written to it. The world is started only if it is needed."""

    def __init__(self, file: Path, *, for_development: bool) -> None:
        self._file, self._for_development = file, for_development
        self._found = {Place(row["kind"], row["variation"]): _task(row) for row in whole_lines(file)}
        self._world: ScienceWorld | None = None

    def places(self) -> list[Place]:
        """List the variations of the stream, solved or not, always in the same order."""
        listing = self._file.with_suffix(".places.json")
        if listing.exists():
            return [Place(kind, variation) for kind, variation in json.loads(listing.read_text(encoding="utf-8"))]
        if self._file.with_suffix(".complete").exists():  # from before there were listings
            return list(self._found)
        found = places(self._started(), for_development=self._for_development)
        listing.parent.mkdir(parents=True, exist_ok=True)
        unfinished = listing.with_suffix(".new")
        with open_own(unfinished, "w") as file:
            file.write(json.dumps([[place.kind, place.variation] for place in found]))
        unfinished.replace(listing)
        return found

    def task(self, place: Place) -> ScienceTask | None:
        """Return the task of an experiment, which is made if the file lacks it; None if no solution is known."""
        if place not in self._found:
            self._found[place] = solved_task(self._started(), place)
            add_line(self._file, _plain(place, self._found[place]))
        return self._found[place]

    def _started(self) -> ScienceWorld:
        if self._world is None:
            self._world = ScienceWorld()
        return self._world

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the world, if it was started."""
        if self._world is not None:
            self._world.close()


def solved_task(world: ScienceWorld, place: Place) -> ScienceTask | None:
    """Make a task with the world's own solution, shortened; None if that does not solve it within the limit of actions."""
    actions = world.load_with_solution(place)
    task = " ".join(world.description().split())  # as one paragraph
    text = f"{task}\n\n{world.look().strip()}\n\n{world.inventory().strip()}"
    short = _without_ways(world, actions)
    world.begin_again()
    steps: list[Step] = []
    for action in short:
        observation = world.act(action)
        if observation is None or world.over:
            if observation is not None:
                steps.append(Step(action=action, observation=observation))
            break
        seen = f"{observation}\n{world.look()}" if action.startswith("teleport to") else observation
        steps.append(Step(action=action, observation=seen))
    solved = world.solved and len(steps) <= LIMITS[place.kind]
    return ScienceTask(place, text, Trajectory(steps)) if solved else None


def _without_ways(world: ScienceWorld, actions: Sequence[str]) -> list[str]:
    """Play a solution, and return its actions with walks between rooms replaced by teleporting."""
    room, kept = room_of(world.look()), list[str]()
    for action in actions:
        if world.over or action.isdigit() or world.act(action) is None:  # ``act`` answers questions itself
            continue
        if not action.startswith(("go to", "open door", "look around", "teleport to")):
            kept.append(action)
        elif (here := room_of(world.look())) and here != room:
            if kept and kept[-1].startswith("teleport to"):
                kept.pop()
            kept.append(f"teleport to {here}")
            room = here
    return kept


def _plain(place: Place, task: ScienceTask | None) -> dict[str, object]:
    line: dict[str, object] = {"kind": place.kind, "variation": place.variation}
    return line if task is None else {**line, "text": task.text, "solution": task.solution.to_json()}


def _task(row: Mapping[str, Any]) -> ScienceTask | None:
    """Return the task of a line; None if the line says that no solution is known."""
    place = Place(row["kind"], row["variation"])
    return ScienceTask(place, row["text"], Trajectory.from_json(row["solution"])) if "text" in row else None
