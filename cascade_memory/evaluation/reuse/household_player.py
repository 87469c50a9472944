"""Carries out a plan in a game: it looks for objects where the case found them, and then everywhere else."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cascade_memory import Step
from cascade_memory.evaluation.environments.household.engine import Engine
from cascade_memory.evaluation.reuse.household_plan import Operation, kind, read_query

LONGEST = 30  # the largest limit of steps in any stream


@dataclass(frozen=True, slots=True)
class Played:
    """The actions and observations in a game. A game that is won ends with the winning action."""

    steps: tuple[Step, ...]
    won: bool


def replay(engine: Engine, game: Path, actions: Sequence[str]) -> Played:
    """Play the actions of a solution."""
    engine.start(game)
    steps = tuple(Step(action, engine.act(action)) for action in actions)
    return Played(steps, engine.won)


def carry_out(engine: Engine, game: Path, plan: Sequence[Operation]) -> Played:
    """Carry out a plan in at most ``LONGEST`` steps. Actions that the game would refuse are skipped and do not count."""
    player = _Free(engine, engine.start(game))
    try:
        for operation in plan:
            player.carry_out(operation)
    except Over:
        pass
    return Played(tuple(player.steps), engine.won)


class Over(Exception):
    """Raised when the game is won, or no steps are left."""


class Player(ABC):
    """Carries out the operations of a plan, and remembers what it has seen. How an action is done is up to the subclass."""

    def __init__(self, query: str) -> None:
        self.steps: list[Step] = []
        self._receptacles = read_query(query).receptacles
        self._seen: dict[str, str] = {}  # object -> receptacle
        self._visited: set[str] = set()
        self._taken: set[str] = set()
        self._here = self._held = ""

    def carry_out(self, operation: Operation) -> None:
        """Carry out an operation, with the walking and searching that it needs."""
        if operation.verb == "take":
            self._take(operation)
        elif operation.verb == "use":
            if tool := self._find(operation.thing, ""):
                self._go(self._seen[tool])
                self._do(f"use {tool}")
        elif self._held and (target := self._like(operation.receptacle)):
            if operation.verb == "move":
                self._go(target)
                if self._do(f"move {self._held} to {target}") is not None:
                    self._held = ""
            else:  # a device must be closed to work
                self._go(target, open_it=False)
                self._do(f"{operation.verb} {self._held} with {target}")

    def _take(self, operation: Operation) -> None:
        thing = self._find(operation.thing, operation.receptacle)
        if not thing:
            return
        where = self._seen[thing]
        self._go(where)
        if self._do(f"take {thing} from {where}") is not None:
            self._held = thing
            self._taken.add(thing)
            self._seen.pop(thing, None)

    def _find(self, wanted: str, first: str) -> str | None:
        """Find an object of the wanted kind that was not taken before: go from receptacle to receptacle until one is seen."""
        left = sorted(self._receptacles, key=lambda one: (one != first, kind(one) != kind(first)))  # stable sort
        for receptacle in ["", *(one for one in left if one not in self._visited)]:
            if receptacle:
                self._go(receptacle)
            found = next((one for one in self._seen if kind(one) == wanted and one not in self._taken), None)
            if found:
                return found
        return None

    def _like(self, receptacle: str) -> str | None:
        """Return the receptacle with this name in this room, or another one of its kind."""
        alike = [one for one in self._receptacles if kind(one) == kind(receptacle)]
        return receptacle if receptacle in alike else next(iter(alike), None)

    def _go(self, receptacle: str, *, open_it: bool = True) -> None:
        if self._here != receptacle:
            observation = self._do(f"go to {receptacle}")
            if observation is None:
                return
            self._here = receptacle
            self._look(observation)
        if open_it:
            self._visited.add(receptacle)
            self._look(self._do(f"open {receptacle}") or "")

    def _look(self, observation: str) -> None:
        for thing in re.findall(r"\ban? ([a-z]+ \d+)\b", observation.partition("you see")[2]):
            self._seen[thing] = self._here

    @abstractmethod
    def _do(self, action: str) -> str | None:
        """Perform an action and return the observation; None if it was not done. Raises ``Over`` at the end."""


class _Free(Player):
    """A player that does what the game allows; an action that the game does not allow costs no step."""

    def __init__(self, engine: Engine, query: str) -> None:
        super().__init__(query)
        self._engine = engine

    def _do(self, action: str) -> str | None:
        if action not in self._engine.possible:
            return None
        if len(self.steps) == LONGEST:
            raise Over
        observation = self._engine.act(action)
        self.steps.append(Step(action, observation))
        if self._engine.won:
            raise Over
        return observation
