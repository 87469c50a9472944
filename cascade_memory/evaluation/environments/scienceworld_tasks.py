"""A stream of experiments in ScienceWorld, each with a solution that was verified by playing it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cascade_memory.domain.trajectory import Step, Trajectory
from cascade_memory.evaluation.environments.scienceworld import LIMITS, Place, ScienceWorld, room_of
from cascade_memory.memory.progress import progress_bar

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


def science_tasks(file: Path, *, for_development: bool = False, progress: bool | None = None) -> list[ScienceTask]:
    """Read the stream, or make it first, which takes minutes. Generated solutions differ each time, so they are stored.

    A variation is left out if its solution does not solve it when it is played again.
    """
    found = _read(file)
    world = None
    try:
        if not file.with_suffix(".complete").exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            world = ScienceWorld()
            with file.open("a", encoding="utf-8") as lines:
                for place in progress_bar(places(world, for_development=for_development), "ScienceWorld", show=progress):
                    if place not in found:
                        found[place] = _made(world, place)
                        lines.write(json.dumps(_plain(place, found[place])) + "\n")
                        lines.flush()
                os.fsync(lines.fileno())
            file.with_suffix(".complete").touch()
    finally:
        if world is not None:
            world.close()
    return [task for task in found.values() if task is not None]


def _made(world: ScienceWorld, place: Place) -> ScienceTask | None:
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


def _read(file: Path) -> dict[Place, ScienceTask | None]:
    """Read the tasks in the file; a line that was cut off is ignored, so that its task is made again."""
    if not file.exists():
        return {}
    raw = file.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if len(whole) < len(raw):
        with file.open("r+b") as lines:
            lines.truncate(len(whole))
    found: dict[Place, ScienceTask | None] = {}
    for line in whole.decode().split("\n"):
        if line:
            row = json.loads(line)
            place = Place(row["kind"], row["variation"])
            found[place] = ScienceTask(place, row["text"], Trajectory.from_json(row["solution"])) if "text" in row else None
    return found
