"""The engine of ALFWorld: one game at a time, in this process."""

from __future__ import annotations

import contextlib
import copy
import json
import sys
from collections.abc import Generator
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.environments.household.rooms import World

if TYPE_CHECKING:
    from typing_extensions import Self


# Environments whose engine was closed, for the next one. Each has its own copy of the planner's library, which holds one game
# and must not be unloaded: a process that does so again and again crashes when it ends.
IDLE: list[Any] = []


def is_installed() -> bool:
    """Say whether the engine is there."""
    return find_spec("alfworld") is not None and find_spec("textworld") is not None


class Engine:
    """Plays games of ALFWorld, one after the other.

    >>> if is_installed():
    ...     with Engine() as engine:
    ...         sorted(engine.world().able["Sliceable"])[:2]
    ... else:
    ...     ['Apple', 'Bread']
    ['Apple', 'Bread']
    """

    def __init__(self) -> None:
        self._env: Any = IDLE.pop() if IDLE else _environment()
        self._loaded: Path | None = None
        self._state: Any = None

    def start(self, game: Path) -> str:
        """Begin a game; return what is seen first: the room and the task."""
        if self._loaded != game:
            self._loaded = None
            try:
                self._env.load(json.loads(game.read_text()))  # by its name it would be opened and never closed
            except (OSError, ValueError, KeyError) as error:
                raise InvalidInput(f"{game} is no game of ALFWorld: {error!r}") from error
            self._loaded = game
        self._state = self._env.reset()
        return str(self._state.feedback).split("\n\n", 1)[-1].strip()  # without the engine's welcome

    def act(self, action: str) -> str:
        """Do something; return what is seen then."""
        self._state, _, _ = self._env.step(action)
        return str(self._state.feedback)

    @property
    def won(self) -> bool:
        """Whether the task is done."""
        return bool(self._state["won"])

    @property
    def possible(self) -> list[str]:
        """The actions that would do something."""
        return list(self._state["admissible_commands"])

    def whereabouts(self) -> dict[str, str]:
        """Return in which receptacle each thing really is, which a player cannot see."""
        facts = [fact for fact in self._state["facts"] if fact.name.lower() == "inreceptacle"]
        pairs = [[argument.name.strip() for argument in fact.arguments] for fact in facts]
        return {thing: receptacle for thing, receptacle in sorted(pairs)}

    def openable(self) -> set[str]:
        """Return the receptacles that can be opened."""
        facts = [fact for fact in self._state["facts"] if fact.name.lower() == "openable"]
        return {fact.arguments[0].name.strip() for fact in facts}

    @staticmethod
    def world() -> World:
        """Return what the engine knows of kitchens and things."""
        constants = _module("alfworld.gen.constants")
        return World(constants.VAL_RECEPTACLE_OBJECTS, constants.VAL_ACTION_OBJECTS)

    @staticmethod
    def wording(task_type: str) -> tuple[str, list[str]]:
        """Return the goal of a type of task in PDDL, and the sentences that ask for it, both with gaps."""
        entry = _module("alfworld.gen.goal_library").gdict[task_type]
        goal = entry["pddl"].replace("#", "-").rstrip()
        return goal[:-1].strip(), list(entry["templates"])  # the last bracket there closes the whole problem

    @staticmethod
    def rules() -> tuple[str, str]:
        """Return the domain, and the grammar of what is said, of the games."""
        data = Path(_module("alfworld").__file__).parent / "data"
        return (data / "alfred.pddl").read_text(), (data / "alfred.twl2").read_text()

    def close(self) -> None:
        """Leave the environment to the next engine."""
        if self._env is not None:
            IDLE.append(self._env)
        self._env = self._state = self._loaded = None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def _environment() -> Any:
    _hasten()
    asked = _module("textworld").EnvInfos(won=True, facts=True)
    planner = _module("textworld.envs").PddlEnv(asked)
    return _module("alfworld.agents.environment.alfred_tw_env").AlfredDemangler(planner, shuffle=False)


@cache  # once in a process
def _hasten() -> None:
    """Let the engine remember what it translated and parsed: that is four fifths of the time that a game takes.

    It translates a game twice whenever it is loaded and whenever it begins, and parses the same few sentences at every step.
    An engine that has no such functions any more goes on without.
    """
    planner, texts = _module("fast_downward"), _module("textworld.envs.pddl.textgen")
    translate, parse = getattr(planner, "pddl2sas", None), getattr(texts, "_parse_and_convert", None)
    if translate is None or parse is None:
        return

    def translated(*given: Any, **named: Any) -> Any:
        with _own_arguments():
            return translate(*given, **named)

    parsed = lru_cache(maxsize=4_096)(parse)

    def parse_and_convert(*given: Any, **named: Any) -> Any:
        return copy.deepcopy(parsed(*given, **named))  # whoever reads it changes it

    planner.pddl2sas, texts._parse_and_convert = lru_cache(maxsize=600)(translated), parse_and_convert


def _module(name: str) -> Any:
    """Import a part of the engine, which comes without types."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra('household games need the extra "bench": pip install "cascade-memory[bench]"') from error


@contextlib.contextmanager
def _own_arguments() -> Generator[None]:
    """Give the process its arguments back: the planner's translator puts its own in their place."""
    before = sys.argv
    try:
        yield
    finally:
        sys.argv = before
