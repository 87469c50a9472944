"""The environments in which a model can act, with their tasks."""

from __future__ import annotations

from collections.abc import Sequence

from cascade_memory.evaluation.environments.household.engine import Engine
from cascade_memory.evaluation.environments.household.games import Game
from cascade_memory.evaluation.environments.scienceworld import ScienceWorld
from cascade_memory.evaluation.environments.scienceworld_tasks import ScienceTask


class ScienceScene:
    """Experiments in ScienceWorld."""

    instruction = (
        "You are in a house and its garden, all of text, and have a task to do there with one action at a time. Actions: "
        "look around, inventory, teleport to ROOM, open THING, close THING, activate THING, deactivate THING, pick up THING, "
        "move THING to PLACE, pour THING into THING, dunk THING into THING, mix THING, use THING on THING, "
        "connect THING to THING, focus on THING, wait1. To focus on something says that it is what the task asks for: "
        "focusing on the wrong thing ends the task."
    )

    def __init__(self, tasks: Sequence[ScienceTask]) -> None:
        self._tasks = tasks
        self._world: ScienceWorld | None = None  # has a Java process, which is started when it is needed

    def begin(self, place: int) -> str:
        """Load the experiment."""
        if self._world is None:
            self._world = ScienceWorld()
        self._world.load(self._tasks[place].place)
        return self._tasks[place].text

    def limit(self, place: int) -> int:
        """The largest number of actions for the experiment."""
        return self._tasks[place].limit

    def act(self, action: str) -> str:
        """Perform an action in the house."""
        assert self._world is not None
        observation = self._world.act(action)
        if observation is None:
            return "That is no action that can be done here."
        return f"{observation}\n{self._world.look()}" if action.startswith("teleport to") else observation

    @property
    def solved(self) -> bool:
        """Whether the experiment is solved: the score is full."""
        return self._world is not None and self._world.solved

    @property
    def over(self) -> bool:
        """Whether the experiment is solved, or cannot be solved any more."""
        return self._world is not None and self._world.over

    def close(self) -> None:
        """End the Java process."""
        if self._world is not None:
            self._world.close()


class HouseholdScene:
    """Games of ALFWorld's kind."""

    instruction = (
        "You are in a room, all of text, and have a task to do there with one action at a time. Actions: look, inventory, "
        "go to PLACE, open PLACE, close PLACE, take THING from PLACE, move THING to PLACE, examine THING, use THING, "
        "clean THING with PLACE, heat THING with PLACE, cool THING with PLACE, slice THING with THING."
    )

    def __init__(self, games: Sequence[Game], limit: int) -> None:
        self._games, self._limit = games, limit
        self._engine: Engine | None = None

    def begin(self, place: int) -> str:
        """Start the game."""
        if self._engine is None:
            self._engine = Engine()
        self._engine.start(self._games[place].file)
        return self._games[place].query

    def limit(self, place: int) -> int:  # noqa: ARG002 - the same for all games
        """The largest number of actions for a game."""
        return self._limit

    def act(self, action: str) -> str:
        """Perform an action in the room."""
        assert self._engine is not None
        return self._engine.act(action)

    @property
    def solved(self) -> bool:
        """Whether the game is won."""
        return self._engine is not None and self._engine.won

    @property
    def over(self) -> bool:
        """Whether the game has ended; it ends only when it is won."""
        return self.solved

    def close(self) -> None:
        """Close the engine."""
        if self._engine is not None:
            self._engine.close()
