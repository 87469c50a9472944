"""A solver for household games without a language model: it solves a declared share alone, the rest by adapting a case.

It reads the plan in a case (its operations, without the walking), replaces its nouns by those of the present task, and carries
it out: it looks for objects where the case found them, and then everywhere else.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from cascade_memory import RecalledCase, Step, Trajectory
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.environments.household.engine import Engine
from cascade_memory.evaluation.environments.household.games import Game
from cascade_memory.evaluation.reuse.outcomes import Outcome, Outcomes
from cascade_memory.evaluation.stream import Attempt

_TASK = "Your task is to: "
_NAME = r"[a-z]+ \d+"
OPERATION = re.compile(rf"(take|move|clean|heat|cool|use) ({_NAME})(?: (?:from|to|with) ({_NAME}))?")
# The words in the texts of tasks that are neither an object nor a receptacle.
_FILLERS = (
    "a an and at chilled clean cleaned cold cool cooled desklamp examine find heat heated hot in inside into it look on one "
    "place put some the them then to turn two under use using warm with"
)
_OTHERS = frozenset(_FILLERS.split())
LONGEST = 30  # the largest limit of steps in any stream
_VERSION = "household-1"  # version of the agent: cached outcomes of other versions are not used


@dataclass(frozen=True, slots=True)
class Request:
    """The content of a query: the receptacles in the room, the wanted object, and the kind of receptacle to put it in."""

    receptacles: tuple[str, ...]
    thing: str | None
    goal: str | None


@dataclass(frozen=True, slots=True)
class Operation:
    """One step of a plan, without walking.

    ``receptacle`` is where the case found, put or treated the object; empty if the object was used where it was.
    """

    verb: str
    thing: str
    receptacle: str = ""


def kind(name: str) -> str:
    """Return the kind of an object or receptacle, without its number.

    >>> kind("drawer 3")
    'drawer'
    """
    return name.rsplit(" ", 1)[0]


def read_query(query: str) -> Request:
    """Parse the room and the task in a query.

    >>> read_query("You see a drawer 1, and a desk 1. Your task is to: put some pencil on desk.")
    Request(receptacles=('drawer 1', 'desk 1'), thing='pencil', goal='desk')
    """
    room, found, task = query.partition(_TASK)
    if not found:
        raise InvalidInput(f"a household task must contain {_TASK!r}, and this one does not: {query!r}")
    receptacles = tuple(dict.fromkeys(re.findall(rf"\ban? ({_NAME})\b", room)))
    kinds = {kind(one) for one in receptacles}
    words = re.findall(r"[a-z]+", task.lower())
    goal = next((word for word in reversed(words) if word in kinds), None)
    thing = next((word for word in words if word not in kinds and word not in _OTHERS), None)
    return Request(receptacles, thing, goal)


def operations(trajectory: Trajectory) -> list[Operation]:
    """Extract the operations of a trajectory, without walking and searching.

    >>> from cascade_memory.domain.trajectory import Step
    >>> actions = ["go to desk 1", "take pen 2 from desk 1", "go to drawer 1", "open drawer 1", "move pen 2 to drawer 1"]
    >>> [operation.verb for operation in operations(Trajectory([Step(action) for action in actions]))]
    ['take', 'move']
    """
    found = (OPERATION.fullmatch(step.action) for step in trajectory.steps)
    return [Operation(one[1], kind(one[2]), one[3] or "") for one in found if one]


def adapted(plan: Sequence[Operation], old: Request, new: Request) -> list[Operation]:
    """Replace the object and the goal of a plan by those of another task.

    >>> old, new = Request((), "pen", "drawer"), Request((), "fork", "shelf")
    >>> adapted([Operation("take", "pen", "desk 1"), Operation("move", "pen", "drawer 2")], old, new)
    [Operation(verb='take', thing='fork', receptacle='desk 1'), Operation(verb='move', thing='fork', receptacle='shelf 2')]
    """
    return [_adapted(one, old, new) for one in plan]


def _adapted(one: Operation, old: Request, new: Request) -> Operation:
    thing = new.thing if new.thing and one.thing == old.thing else one.thing
    receptacle = one.receptacle
    if one.verb == "move" and new.goal and old.goal and kind(receptacle) == old.goal:
        receptacle = f"{new.goal} {receptacle.rsplit(' ', 1)[1]}"
    return replace(one, thing=thing, receptacle=receptacle)


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


class HouseholdAgent:
    """REUSE agent, no language model: it carries out the plan of the best recalled case, with the nouns replaced.

    It looks for the object where the case found it, and then everywhere else. ``alone`` says which games it wins without a
    case, as an LLM wins some without memory. A game must be won within ``limit`` steps.
    """

    def __init__(self, games: Sequence[Game], *, alone: Sequence[bool], outcomes: Path, limit: int) -> None:
        if not 1 <= limit <= LONGEST:
            raise InvalidInput(f"limit must be between 1 and {LONGEST} steps, not {limit}")
        self._games, self._alone, self._limit = games, alone, limit
        self._outcomes = Outcomes(outcomes)
        self._engine: Engine | None = None  # started when the first outcome is unknown

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a game with the first of the cases."""
        game = self._games[place]
        if self._alone[place]:
            return self._judged(self._known(game, "solution", lambda engine: replay(engine, game.file, game.solution)))
        if not cases or not isinstance(cases[0].solution, Trajectory):
            return Attempt(False, None, steps=0)
        plan = adapted(operations(cases[0].solution), read_query(cases[0].query), read_query(game.query))
        return self._judged(self.carried_out(game, plan))

    def carried_out(self, game: Game, plan: Sequence[Operation]) -> Outcome:
        """Return the outcome of a plan in a game.

        The plan is played once, with at most ``LONGEST`` steps; for a smaller limit, the caller cuts the outcome.
        """
        key = json.dumps([asdict(operation) for operation in plan])
        return self._known(game, key, lambda engine: carry_out(engine, game.file, plan))

    def _known(self, game: Game, what: str, play: Callable[[Engine], Played]) -> Outcome:
        depends_on = [_VERSION, hashlib.sha256(game.file.read_bytes()).hexdigest(), what]
        known = self._outcomes.known(depends_on)
        if known is None:
            if self._engine is None:
                self._engine = Engine()
            played = play(self._engine)
            known = Outcome(played.won, Trajectory(played.steps) if played.steps else None)
            self._outcomes.keep(depends_on, known)
        return known

    def _judged(self, outcome: Outcome) -> Attempt:
        if outcome.done is None:
            return Attempt(False, None, steps=0)
        steps = outcome.done.steps
        done = outcome.done if len(steps) <= self._limit else Trajectory(steps[: self._limit])
        return Attempt(outcome.success and len(steps) <= self._limit, done, steps=len(done.steps))

    def close(self) -> None:
        """Close the engine."""
        self._outcomes.close()
        if self._engine is not None:
            self._engine.close()
