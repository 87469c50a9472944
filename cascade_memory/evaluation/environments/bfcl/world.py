"""Plays calls in the simulated systems of BFCL, and judges them as its own checker does."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import localcontext
from functools import cache
from importlib import import_module
from typing import Any

from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.environments.bfcl.calls import read_call
from cascade_memory.evaluation.environments.bfcl.tasks import CLASSES, BFCLTask, lacking

MOST_CALLS = 200  # in one task; the longest right solution has 35
_FAILED = "Error during execution: "  # the beginning of the result of a call that failed, as BFCL writes it
_CHECKER = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
_FILES = "bfcl_eval.constants.executable_backend_config"
# Arguments of functions that compute: with larger values they would take for ever.
_SMALL = {"precision": 1_000, "decimal_places": 1_000, "exponent": 1_000}


@dataclass(frozen=True, slots=True)
class Played:
    """Whether calls solved a task, and what each call returned, turn by turn."""

    success: bool
    results: tuple[tuple[str, ...], ...]


class World:
    """New systems in the state in which a task begins.

    They are copied once they are made, because some share objects with each other, and with those of other tasks.
    """

    def __init__(self, task: BFCLTask) -> None:
        made = _installed()
        self.systems: dict[str, Any] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self._left = MOST_CALLS
        for name in task.classes:
            system = made.classes[name]()
            if name not in made.stateless:
                system._load_scenario(copy.deepcopy(task.config.get(name, {})), long_context=task.long_context)
            self.systems[name] = system = copy.deepcopy(system)
            self._functions.update(inspect.getmembers(system, inspect.ismethod))

    def call(self, text: str) -> str:
        """Make a call and return its result as text. A call that is refused, or fails, has its error as the result."""
        try:
            return _text_of(self._called(text))
        except Exception as error:  # noqa: BLE001 - whatever a system raises is the result of the call, as in BFCL
            return f"{_FAILED}{error}"

    def _called(self, text: str) -> Any:
        call = read_call(text)
        function = None if call.name.startswith("_") else self._functions.get(call.name)
        if function is None:
            raise InvalidInput(f"there is no function {call.name!r:.100}")
        if self._left == 0:
            raise InvalidInput(f"a task may be solved with {MOST_CALLS} calls")
        self._left -= 1
        try:
            given = inspect.signature(function).bind(*call.by_place, **dict(call.by_name)).arguments
        except TypeError:
            given = {}  # the function itself says what is wrong
        for name, most in _SMALL.items():
            value = given.get(name, 0)
            if isinstance(value, (int, float)) and abs(value) > most:
                raise InvalidInput(f"{name} must be between {-most} and {most}")
        return function(*call.by_place, **dict(call.by_name))


def play(task: BFCLTask, turns: Sequence[Sequence[str]]) -> Played:
    """Make the calls of each turn, and judge them; a turn for which there are none is played without calls.

    As in BFCL, calls are right if after each turn in which something is to be done the systems have the same state as after
    the right calls, and if the results so far include those of the right calls of this turn.
    """
    made = _installed()
    with _own_precision():
        mine, right = World(task), World(task)
        results: list[tuple[str, ...]] = []
        success = True
        for turn, wanted in enumerate(task.right):
            calls = turns[turn] if turn < len(turns) else ()
            results.append(tuple(mine.call(one) for one in calls))
            returned = [right.call(str(one)) for one in wanted]
            if wanted:
                so_far = [one for before in results for one in before]
                success = success and bool(calls) and made.is_same(mine, right) and made.includes(so_far, returned, turn)
    return Played(success, tuple(results))


def _text_of(result: Any) -> str:
    """Write a result as BFCL does."""
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except (TypeError, ValueError):
            return str(result)  # type: ignore[no-any-return]
    return result if isinstance(result, str) else str(result)


@contextmanager
def _own_precision() -> Generator[None]:
    """Keep the precision of numbers that MathAPI sets from reaching the rest of the process, and the other way round."""
    mpmath: Any = import_module("mpmath")  # it has no types
    with localcontext(), mpmath.workdps(15):
        yield


@dataclass(frozen=True, slots=True)
class _Installed:
    """What is used of the installed package: the classes of the systems, and the two checks of its judge."""

    classes: Mapping[str, Callable[[], Any]]
    stateless: frozenset[str]
    state_checker: Callable[..., Mapping[str, Any]]
    response_checker: Callable[..., Mapping[str, Any]]

    def is_same(self, mine: World, right: World) -> bool:
        return bool(self.state_checker(mine.systems, right.systems)["valid"])

    def includes(self, results: list[str], returned: list[str], turn: int) -> bool:
        return bool(self.response_checker(results, returned, turn)["valid"])


@cache
def _installed() -> _Installed:
    if why := lacking():
        raise MissingExtra(why)
    checker, files = import_module(_CHECKER), import_module(_FILES)
    where: Mapping[str, str] = files.CLASS_FILE_PATH_MAPPING
    return _Installed(
        {name: getattr(import_module(where[name]), name) for name in CLASSES},
        frozenset(files.STATELESS_CLASSES),
        checker.state_checker,
        checker.response_checker,
    )
