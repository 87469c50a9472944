"""The agent for household games that does not know which actions are allowed, and that listens to warnings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from cascade_memory import RecalledCase, Step, Trajectory
from cascade_memory.evaluation.environments.household.engine import Engine
from cascade_memory.evaluation.environments.household.games import Game
from cascade_memory.evaluation.reuse.household import OPERATION, Over, Player, adapted, kind, operations, read_query
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.evaluation.warned.known_world import KnownWorld
from cascade_memory.evaluation.warned.listening import Act, Listener, from_the_declined

_VERSION = "household-warned-1"
_REFUSED = "Nothing happens"  # the beginning of the game's answer to what it does not allow
_CLOSED = "is closed"
_WAYS = ("go to ", "open ", "close ", "examine ")
T = TypeVar("T")


class HouseholdWorld:
    """ALFWorld's engine as a world that can be begun again."""

    def __init__(self) -> None:
        self._engine = Engine()

    def begin(self, place: str) -> None:
        """Begin the game in a file."""
        self._engine.start(Path(place))

    def act(self, action: str) -> str | None:
        """Perform an action; a refused one also has an observation."""
        return self._engine.act(action)

    def look(self) -> str:
        """Return an empty text: the agent does not use this."""
        return ""

    def possible(self) -> list[str]:
        """Return no actions: the agent does not know what is allowed."""
        return []

    @property
    def over(self) -> bool:
        """Whether the game is won; it cannot be lost."""
        return self._engine.won

    @property
    def solved(self) -> bool:
        """Whether the game is won."""
        return self._engine.won

    def close(self) -> None:
        """Release the engine."""
        self._engine.close()


class Household:
    """Plays games like ``HouseholdAgent``, with three differences.

    First, it does not know what the game allows: a refused action costs a step. Second, it opens what it sees to be closed.
    Third, it listens to warnings. If it solves a game alone, it plays the known solution, and listens to warnings there as
    well.
    """

    def __init__(self, games: Sequence[Game], *, alone: Sequence[bool], limit: int, answers: Path) -> None:
        self._games, self._alone, self._limit = games, alone, limit
        self._world = KnownWorld(answers, _VERSION, HouseholdWorld)

    def attempt(self, place: int, cases: Sequence[RecalledCase], listener: Listener) -> Attempt:
        """Attempt a game with the first of the cases."""
        game = self._games[place]
        case = cases[0] if cases and isinstance(cases[0].solution, Trajectory) else None
        if case is None and not self._alone[place]:
            return Attempt(False, None, steps=0)
        self._world.begin(str(game.file), about=hashlib.sha256(game.file.read_bytes()).hexdigest())
        player = _Listening(self._world, game.query, listener, self._limit)
        try:
            if self._alone[place]:
                player.carry_out_all(game.solution, player.do)
            elif case is not None and isinstance(case.solution, Trajectory):
                done = Trajectory([step for step in case.solution.steps if not step.failed] or case.solution.steps)
                plan = adapted(operations(done), read_query(case.query), read_query(game.query))
                player.carry_out_all(plan, player.carry_out)
        except Over:
            pass
        done = Trajectory(player.steps) if player.steps else None
        return Attempt(self._world.solved, done, steps=len(player.steps))

    def close(self) -> None:
        """Close the world."""
        self._world.close()


class _Listening(Player):
    def __init__(self, world: KnownWorld, query: str, listener: Listener, limit: int) -> None:
        super().__init__(query)
        self._world, self._listener, self._limit = world, listener, limit
        self._wanted = read_query(query).thing or ""
        self._closed = False  # what the agent stands at
        self._instead: set[str] = set()

    def carry_out_all(self, plan: Sequence[T], do: Callable[[T], None]) -> None:
        """Carry out a plan; if the agent has a last resort, carry out the plan again from where an action was declined."""
        rest = from_the_declined(plan, do, self._listener)
        after_all = self._listener.last_resort()
        if after_all is not None:
            self._visited = {one for one in self._visited if not after_all.action.endswith(f" {one}")}
            for one in rest:
                do(one)

    def do(self, action: str) -> None:
        """Do an action of a known solution."""
        self._do(action)

    def _go(self, receptacle: str, *, open_it: bool = True) -> None:
        if self._here != receptacle and self._do(f"go to {receptacle}") is None:
            return
        if open_it:
            self._visited.add(receptacle)
            if self._closed:
                self._do(f"open {receptacle}")

    def _do(self, action: str) -> str | None:
        if len(self.steps) == self._limit:
            raise Over
        told = self._listener.before(Act(action, done=self.steps))
        if told is None:
            return self._perform(action)
        own = self._own(told.instead)
        if own and own != action and own not in self._instead and self._listener.before(Act(own, done=self.steps)) is None:
            self._instead.add(own)
            self._perform(own)
        return None

    def _perform(self, action: str) -> str | None:
        observation = self._world.act(action) or ""
        failed = observation.startswith(_REFUSED)
        self.steps.append(Step(action, observation, failed=failed))
        if self._world.over:
            raise Over
        if failed:
            return None
        self._note(action, observation)
        return observation

    def _note(self, action: str, observation: str) -> None:
        if action.startswith("go to "):
            self._here, self._closed = action.removeprefix("go to "), _CLOSED in observation
        elif action.startswith("open "):
            self._closed = False
        elif found := OPERATION.fullmatch(action):
            if found[1] == "take":
                self._held = found[2]
                self._taken.add(found[2])
                self._seen.pop(found[2], None)
            elif found[1] == "move":
                self._held = ""
        self._look(observation)

    def _own(self, action: str) -> str | None:
        """Translate an action of another game to this one: to a receptacle of this room and the held or wanted object.

        Return None if the room has no fitting receptacle or object.
        """
        for way in _WAYS:
            if action.startswith(way):
                receptacle = self._like(action.removeprefix(way))
                return f"{way}{receptacle}" if receptacle else None
        found = OPERATION.fullmatch(action)
        if found is None:
            return None
        if found[1] in ("take", "use"):
            like = self._wanted if found[1] == "take" else kind(found[2])
            thing = next((one for one in self._seen if kind(one) == like and one not in self._taken), None)
            where = f" from {self._seen[thing]}" if thing and found[1] == "take" else ""
            return f"{found[1]} {thing}{where}" if thing else None
        receptacle = self._like(found[3] or "")
        between = "to" if found[1] == "move" else "with"
        return f"{found[1]} {self._held} {between} {receptacle}" if self._held and receptacle else None
