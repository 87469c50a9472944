"""The engine of ALFWorld: one game at a time, in this process.

A game file is kept from running code: its grammar may hold Python expressions, which the engine evaluates.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import sys
from collections.abc import Generator
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.environments.household.rooms import World

if TYPE_CHECKING:
    from typing_extensions import Self

_READABLE = frozenset({"name", "id", "type", "definite", "indefinite"})  # what a text may say about a thing
# Environments of closed engines, to be used again. Each has its own copy of the planner's library, which holds one game and
# must not be unloaded: a process that unloads it repeatedly crashes when it ends.
IDLE: list[Any] = []
_RULES = ("pddl_domain", "grammar", "pddl_problem")  # what the engine reads of a game
MOST_BYTES = 20_000_000  # of a game; ALFWorld's own have less than a tenth of this


@lru_cache(maxsize=4_096)
def is_harmless(expression: str) -> bool:
    """Say whether an expression only joins texts and the names of things, as those of ALFWorld's own games do.

    >>> is_harmless("o.indefinite + ' ' + o.name"), is_harmless("__import__('os').system('ls')"), is_harmless("o.name.format")
    (True, False, False)
    """
    if len(expression) > 1_000:
        return False
    try:
        return _joins_names(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _joins_names(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and _joins_names(node.left) and _joins_names(node.right)
    if isinstance(node, ast.BoolOp):  # "the name, or else the id"
        return all(_joins_names(one) for one in node.values)
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.attr in _READABLE
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def make_safe(texts: Any) -> None:
    """Make ``texts``, the engine's module that evaluates expressions, raise before it evaluates one that is not harmless."""
    symbol = getattr(texts, "EvalSymbol", None)
    if symbol is None or not hasattr(symbol, "derive"):
        raise InvalidInput("how this version of textworld evaluates texts is not known to be safe: install textworld 1.7")
    derive = symbol.derive

    def checked(self: Any, context: Any = None) -> Any:
        if not is_harmless(str(self.expression)):
            raise InvalidInput(f"the game holds code in its texts, which is not run: {str(self.expression)[:80]!r}")
        return derive(self, context)

    symbol.derive = checked


def is_installed() -> bool:
    """Say whether the engine is installed."""
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
        """Begin a game; return the first text: the room and the task."""
        if self._loaded != game:
            self._loaded = None
            # Given the path, the engine would open the file and never close it.
            rules = _checked(game)
            try:
                self._env.load(rules)
            except InvalidInput:
                raise
            except Exception as error:  # the engine and its planner raise anything on a damaged game
                raise InvalidInput(f"{game} is not a game of ALFWorld: {error!r:.300}") from error
            self._loaded = game
        self._state = self._env.reset()
        return str(self._state.feedback).split("\n\n", 1)[-1].strip()  # without the engine's welcome text

    def act(self, action: str) -> str:
        """Perform an action; return the observation."""
        self._state, _, _ = self._env.step(action)
        return str(self._state.feedback)

    @property
    def won(self) -> bool:
        """Whether the task is done."""
        return bool(self._state["won"])

    @property
    def possible(self) -> list[str]:
        """The actions that are possible now."""
        return list(self._state["admissible_commands"])

    def whereabouts(self) -> dict[str, str]:
        """Return the receptacle that each object is really in, which a player cannot see."""
        facts = [fact for fact in self._state["facts"] if fact.name.lower() == "inreceptacle"]
        pairs = [[argument.name.strip() for argument in fact.arguments] for fact in facts]
        return {thing: receptacle for thing, receptacle in sorted(pairs)}

    def openable(self) -> set[str]:
        """Return the receptacles that can be opened."""
        facts = [fact for fact in self._state["facts"] if fact.name.lower() == "openable"]
        return {fact.arguments[0].name.strip() for fact in facts}

    @staticmethod
    def world() -> World:
        """Return the engine's knowledge about receptacles and objects."""
        constants = _module("alfworld.gen.constants")
        return World(constants.VAL_RECEPTACLE_OBJECTS, constants.VAL_ACTION_OBJECTS)

    @staticmethod
    def wording(task_type: str) -> tuple[str, list[str]]:
        """Return the goal of a type of task in PDDL, and the templates of its sentences, both with placeholders."""
        entry = _module("alfworld.gen.goal_library").gdict[task_type]
        goal = entry["pddl"].replace("#", "-").rstrip()
        return goal[:-1].strip(), list(entry["templates"])  # the last bracket closes the whole problem

    @staticmethod
    def rules() -> tuple[str, str]:
        """Return the PDDL domain of the games, and the grammar of their texts."""
        data = Path(_module("alfworld").__file__).parent / "data"
        return (data / "alfred.pddl").read_text(encoding="utf-8"), (data / "alfred.twl2").read_text(encoding="utf-8")

    def close(self) -> None:
        """Release the environment, so that the next engine can use it."""
        if self._env is not None:
            IDLE.append(self._env)
        self._env = self._state = self._loaded = None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the engine."""
        self.close()


def is_solvable(game: Path) -> bool:
    """Return False if the file of a game marks the game as unsolvable, otherwise True."""
    return _content(game).get("solvable", True) is not False


def _checked(game: Path) -> dict[str, Any]:
    """Return the three texts that the engine needs of a game's file; raise an error if one is missing."""
    found = _content(game)
    if lacking := [name for name in _RULES if not isinstance(found.get(name), str)]:
        raise InvalidInput(f"{game} is not a game of ALFWorld: it needs {lacking[0]!r}, a text")
    return {name: found[name] for name in _RULES}


def _content(game: Path) -> dict[str, Any]:
    try:
        if game.stat().st_size > MOST_BYTES:
            raise InvalidInput(f"{game} is not a game of ALFWorld: it has more than {MOST_BYTES:,} bytes")
        found = json.loads(game.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{game} is not a game of ALFWorld: {error!r:.300}") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{game} is not a game of ALFWorld: it must be a JSON object")
    return cast("dict[str, Any]", found)


def _environment() -> Any:
    _guard()
    _hasten()
    asked = _module("textworld").EnvInfos(won=True, facts=True)
    planner = _module("textworld.envs").PddlEnv(asked)
    return _module("alfworld.agents.environment.alfred_tw_env").AlfredDemangler(planner, shuffle=False)


@cache  # once in a process
def _guard() -> None:
    make_safe(_module("textworld.envs.pddl.textgen"))


@cache  # once in a process
def _hasten() -> None:
    """Make the engine cache what it has translated and parsed: these two steps take four fifths of the time of a game.

    The engine translates a game twice when the game is loaded and again when it begins, and parses the same few sentences at
    every step. If a later version of the engine lacks the functions for these steps, nothing is cached.
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
        return copy.deepcopy(parsed(*given, **named))  # the engine changes what it gets, so return a copy

    planner.pddl2sas, texts._parse_and_convert = lru_cache(maxsize=600)(translated), parse_and_convert


def _module(name: str) -> Any:
    """Import a module of the engine, which has no type annotations."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra('household games need the extra "bench": pip install "cascade-memory[bench]"') from error


@contextlib.contextmanager
def _own_arguments() -> Generator[None]:
    """Restore ``sys.argv`` at the end of the block, since the planner's translator replaces it."""
    before = sys.argv
    try:
        yield
    finally:
        sys.argv = before
