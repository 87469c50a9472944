"""The environments in which a model can act, with their tasks."""

from __future__ import annotations

from collections.abc import Sequence

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.environments.household.engine import Engine
from cascade_memory.evaluation.environments.household.games import Game, splits_of
from cascade_memory.evaluation.environments.published import same_text
from cascade_memory.evaluation.environments.scienceworld import UNKNOWN, ScienceWorld
from cascade_memory.evaluation.environments.scienceworld_whole import Start, text_of
from cascade_memory.evaluation.model.acting import HOUSEHOLD_EXAMPLE, SCIENCE_EXAMPLE


class ScienceScene:
    """Experiments in ScienceWorld. The model sees each reply of the world unchanged, also if the world asks what was meant."""

    instruction = (
        "You do scientific experiments in a world of text, with one action at a time. Its rooms: kitchen, foundry, workshop, "
        "bathroom, outside, living room, bedroom, greenhouse, art studio, hallway. You can teleport to any room in one step. "
        "All containers are already open: take things out of them directly. The task is followed by what you see at first. "
        "Find what you need for the experiment.\n"
        "Actions, where THING is anything that you see or carry:\n"
        "- look around: describes the room\n"
        "- teleport to ROOM\n"
        "- examine THING: describes it closely\n"
        "- look at THING: says what is in a container\n"
        "- read THING: a note or a book\n"
        "- pick up THING: carry it with you\n"
        "- move THING to THING: puts it into a container or in a place\n"
        "- pour THING into THING: a liquid into a container\n"
        "- mix THING: lets what is in a container react\n"
        "- open THING, close THING: a container\n"
        "- activate THING, deactivate THING: a device\n"
        "- use THING, use THING on THING: a tool or a device\n"
        "- connect THING to THING, disconnect THING: parts of an electric circuit\n"
        "- focus on THING: says that this is what the task asks for; on a wrong thing, the task is lost\n"
        "- wait1: one step passes; wait: ten steps pass\n"
        "If the world asks which of several things you mean, the action is the number of your choice, and nothing else."
    )
    room_for_thoughts = 5
    example = SCIENCE_EXAMPLE

    def __init__(self, tasks: Sequence[Start], differs: str = "") -> None:
        self._tasks, self.differs = tasks, differs
        self._world: ScienceWorld | None = None  # has a Java process, which is started when it is needed
        self.refused = False

    def begin(self, place: int) -> str:
        """Load the experiment."""
        if self._world is None:
            self._world = ScienceWorld()
        task = self._tasks[place]
        self._world.load(task.place)
        if not same_text(text_of(self._world), task.text):
            about = f"{task.place.kind}, variation {task.place.variation}"
            raise InvalidInput(
                f"{about}, begins with another text here than in the stream: install the version of scienceworld with which "
                "the stream was made (the paper's: 1.2.3)"
            )
        return task.text

    def limit(self, place: int) -> int:
        """The largest number of actions for the experiment."""
        return self._tasks[place].limit

    def possible(self) -> Sequence[str]:
        """Return an empty list, since thousands of actions are possible."""
        return ()

    def act(self, action: str) -> str:
        """Perform an action in the experiment."""
        assert self._world is not None
        observation = self._world.say(action)
        self.refused = observation.startswith(UNKNOWN)
        return observation

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
    """Games like those of ALFWorld; the possible actions are listed before each action, and only they are performed."""

    instruction = (
        "You act in a household, in a world of text, with one action at a time, and do exactly what the task says. Before each "
        "action you see the list of all actions that are possible: choose one of them, and copy it word by word."
    )
    room_for_thoughts = 5
    example = HOUSEHOLD_EXAMPLE

    def __init__(self, games: Sequence[Game], limit: int, differs: str = "") -> None:
        self._games, self._limit, self.differs, self.splits = games, limit, differs, splits_of(games)
        self._engine: Engine | None = None
        self.refused = False

    def begin(self, place: int) -> str:
        """Start the game."""
        if self._engine is None:
            self._engine = Engine()
        game = self._games[place]
        if not same_text(self._engine.start(game.file), game.query):
            raise InvalidInput(
                f"{game.file} begins with another text than the stream says: get the games of the version with which the "
                "stream was made (the paper's: alfworld 0.4.2, alfworld-download)"
            )
        return game.query

    def limit(self, place: int) -> int:  # noqa: ARG002 - the same for all games
        """The largest number of actions for a game."""
        return self._limit

    def possible(self) -> Sequence[str]:
        """List all actions that are possible now."""
        return () if self._engine is None else self._engine.possible

    def act(self, action: str) -> str:
        """Perform an action in the game, if it is possible."""
        assert self._engine is not None
        self.refused = action not in self._engine.possible
        return "This is none of the possible actions. Try again." if self.refused else self._engine.act(action)

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
