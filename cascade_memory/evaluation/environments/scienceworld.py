"""ScienceWorld in its "easy" simplification: scientific experiments in a text world."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from cascade_memory.errors import MissingExtra

# The types of task that the reuse agent plays, and how many actions each allows (the limits of the paper's environment).
LIMITS = {
    "find-animal": 15,
    "find-living-thing": 15,
    "find-non-living-thing": 15,
    "find-plant": 15,
    "use-thermometer": 30,
    "test-conductivity": 30,
    "test-conductivity-of-unknown-substances": 30,
    "lifespan-longest-lived": 10,
    "lifespan-shortest-lived": 10,
}
# All types of the paper. The reuse agent needs a known solution within the limit, and these two have none.
ALL_LIMITS = {**LIMITS, "grow-plant": 30, "lifespan-longest-lived-then-shortest-lived": 12}

UNKNOWN = "No known action"  # the beginning of the world's answer to an action that it does not know
_SMALL = "-Xmx1500m -XX:+UseSerialGC"  # by default, Java would use a quarter of the machine's memory for each worker


@dataclass(frozen=True, slots=True)
class Place:
    """Identifies an experiment: a type of task and one of its variations."""

    kind: str
    variation: int


class ScienceWorld:
    """One Java process with a loaded world.

    Actions are sent directly to the simulator, because the usual interface lists all valid actions (up to thousands) each time.
    """

    def __init__(self) -> None:
        try:
            simulator: Any = import_module("scienceworld")  # the package has no type annotations
        except ImportError as error:
            raise MissingExtra('ScienceWorld needs the extra "bench" and Java: pip install "cascade-memory[bench]"') from error
        if shutil.which("java") is None:
            raise MissingExtra("ScienceWorld needs Java, which was not found: install a JRE, version 11 or later")
        given = os.environ.get("JAVA_TOOL_OPTIONS")
        os.environ["JAVA_TOOL_OPTIONS"] = given or _SMALL
        try:
            self._world: Any = simulator.ScienceWorldEnv("", envStepLimit=1000)
        finally:
            if given is None:
                del os.environ["JAVA_TOOL_OPTIONS"]
        self._server: Any = self._world.server

    def training_variations(self, kind: str) -> list[int]:
        """Return the numbers of the training variations of a type of task; they are not used for testing."""
        self._world.load(kind, 0, "easy", False)
        return sorted(self._world.get_variations_train())

    def variations(self, kind: str) -> int:
        """Return how many variations a type of task has."""
        return int(self._world.get_max_variations(kind))

    def load(self, place: Place) -> None:
        """Begin an experiment."""
        self._world.load(place.kind, place.variation, "easy", False)
        self.begin_again()

    def load_with_solution(self, place: Place) -> list[str]:
        """Begin an experiment, and return actions that solve it."""
        self._world.load(place.kind, place.variation, "easy", True)
        self.begin_again()
        return list(self._world.get_gold_action_sequence())

    def begin_again(self) -> None:
        """Reset the experiment to its beginning."""
        self._server.reset()
        self._server.step("look around")

    def description(self) -> str:
        """Describe the task in words."""
        return str(self._world.get_task_description()).strip()

    def look(self) -> str:
        """Describe the room."""
        return str(self._world.look())

    def inventory(self) -> str:
        """Describe what the agent carries."""
        return str(self._world.inventory())

    def say(self, action: str) -> str:
        """Perform an action and return the answer: an observation, a refusal, or a question with numbered choices."""
        return str(self._server.step(action))

    def act(self, action: str) -> str | None:
        """Perform an action and return the observation; None if the world does not know the action.

        If the world asks which of several meanings an action has, the first one is chosen.
        """
        observation = self.say(action)
        if observation.startswith(UNKNOWN):
            return None
        return self.say("0") if observation.startswith("Ambiguous") else observation

    def possible(self) -> list[str]:
        """List all actions that are possible now."""
        return list(self._world.get_valid_action_object_combinations())

    @property
    def solved(self) -> bool:
        """Whether the task is solved: the score is full."""
        return round(100 * self._server.getScore()) == 100

    @property
    def over(self) -> bool:
        """Whether the task is solved, or cannot be solved any more."""
        return bool(self._server.getCompleted()) or self._server.getScore() < 0

    def close(self) -> None:
        """End the Java process and wait for it; the environment's own ``close`` leaves files open."""
        process = self._world._gateway.java_process
        self._world.close()
        process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        self._world._obj_tree_tempdir.cleanup()


_ROOM = re.compile(r"(?:room|location) is called the ([a-z ]+?)\.")


def room_of(view: str) -> str | None:
    """Find the name of a room in its description.

    >>> room_of("This room is called the art studio. In it, you see: ...")
    'art studio'
    """
    found = _ROOM.search(view)
    return found[1] if found else None
