"""Reads the tasks of BFCL v4 multi-turn from the installed package ``bfcl-eval``. Nothing of it is copied into this package."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.environments.bfcl.calls import Call, read_call, write_turns

VERSION = "2026.3.23"  # other versions may have other tasks under the same names
INSTALL = f"pip install --no-deps bfcl-eval=={VERSION} mpmath"
# The kinds of tasks, by the names that the package's files give them. The twins of a task have the same number in each kind.
KINDS = {
    "base": "base",
    "miss_param": "missing parameter",
    "miss_func": "missing function",
    "long_context": "long context",
}
CLASSES = (  # in the package, other classes search the web or keep memories; no multi-turn task has them
    *("GorillaFileSystem", "MathAPI", "MessageAPI", "TwitterAPI", "TicketAPI", "TradingBot", "TravelAPI"),
    "VehicleControlAPI",
)
ARRIVES = "I have updated some more functions you can choose from. What about now?"  # what BFCL's runner then says
_MOST_BYTES, _MOST_TURNS = 50_000_000, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BFCLTask:
    """What a user asks for in several turns, and the calls that do it.

    In a task of the kind "missing parameter", one turn does not say all that is needed, and a later one does. In one of the
    kind "missing function", a function is not offered before a certain turn. Nothing is to be called in the turn before.
    """

    name: str
    kind: str  # a key of KINDS
    number: int
    turns: tuple[str, ...]
    classes: tuple[str, ...]
    config: Mapping[str, Any]  # the state of each class at the beginning
    right: tuple[tuple[Call, ...], ...]

    @property
    def query(self) -> str:
        """The text by which a memory finds similar tasks: what the user says, one line for each turn."""
        return "\n".join(self.turns)

    @property
    def solution(self) -> str:
        """The right calls of each turn as text."""
        return write_turns(self.right)

    @property
    def long_context(self) -> bool:
        """Whether the systems contain much that the task does not need."""
        return self.kind == "long_context"


def lacking() -> str | None:
    """Say what is missing to play these tasks; None if nothing is missing."""
    try:
        installed = metadata.version("bfcl-eval")
    except metadata.PackageNotFoundError:
        return f"the tasks of BFCL are in the package bfcl-eval, which is not installed: {INSTALL}"
    if installed != VERSION:
        return f"the tasks of BFCL are read from bfcl-eval {VERSION}, not {installed}: {INSTALL}"
    if find_spec("bfcl_eval") is None or find_spec("mpmath") is None:
        return f"bfcl-eval is not installed completely: {INSTALL}"
    return None


def installed_data() -> Path:
    """Return the folder of the tasks in the installed package."""
    if why := lacking():
        raise MissingExtra(why)
    spec = find_spec("bfcl_eval")
    assert spec is not None
    return Path((spec.submodule_search_locations or [""])[0]) / "data"


@cache
def installed_tasks(kind: str) -> tuple[BFCLTask, ...]:
    """Read the tasks of a kind from the installed package, in the order of its file."""
    return tuple(read_tasks(installed_data(), kind))


def read_tasks(data: Path, kind: str) -> list[BFCLTask]:
    """Read the tasks of a kind from a folder, in the order of the file."""
    if kind not in KINDS:
        raise InvalidInput(f"BFCL has no multi-turn tasks of the kind {kind!r}; it has {', '.join(KINDS)}")
    file = f"BFCL_v4_multi_turn_{kind}.json"
    tasks = _lines(data / file)
    answers = {name: answer for name, (_, answer) in _lines(data / "possible_answer" / file).items()}
    if tasks.keys() != answers.keys():
        raise InvalidInput(f"{data / file} and the file of its answers do not have the same tasks")
    return [_task(kind, name, entry, answers[name], f"{data / file}, line {line}") for name, (line, entry) in tasks.items()]


def _lines(path: Path) -> dict[str, tuple[int, dict[str, Any]]]:
    """Read a file of JSON lines: the number of each line and its object, by the object's "id"."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidInput(f"{path} is larger than {_MOST_BYTES:,} bytes")
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{path}, line {number} is not JSON: {error}") from error
        name = cast("dict[str, Any]", entry).get("id") if isinstance(entry, dict) else None
        if not isinstance(name, str) or name in found:
            raise InvalidInput(f'{path}, line {number} needs an "id" of its own')
        found[name] = number, cast("dict[str, Any]", entry)
    if not found:
        raise InvalidInput(f"{path} holds no tasks")
    return found


def _task(kind: str, name: str, entry: Mapping[str, Any], answer: Mapping[str, Any], place: str) -> BFCLTask:
    try:
        classes, config = _classes(entry["involved_classes"]), dict(entry["initial_config"])
        arriving = {int(turn): ", ".join(_texts(names)) for turn, names in dict(entry.get("missed_function", {})).items()}
        turns = tuple(_said(messages, arriving.get(turn)) for turn, messages in enumerate(_list(entry["question"])))
        right = tuple(tuple(map(read_call, _texts(calls))) for calls in _list(answer["ground_truth"]))
        _check_turns(len(turns), len(right))
        number = int(name.rpartition("_")[2])
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"{place} holds something other than a multi-turn task: {error!s:.300}") from error
    return BFCLTask(
        name=name,
        kind=kind,
        number=number,
        turns=turns,
        classes=classes,
        config=config,
        right=right,
    )


def _classes(names: Any) -> tuple[str, ...]:
    classes = tuple(_texts(names))
    if unknown := sorted(set(classes) - set(CLASSES)):
        raise ValueError(f"there is no class {unknown[0]!r}")
    return classes


def _check_turns(turns: int, answers: int) -> None:
    if not 1 <= turns == answers <= _MOST_TURNS:
        raise ValueError(f"there are {turns} turns, and right calls for {answers}")


def _said(messages: Any, arriving: str | None) -> str:
    """Return what is said in a turn, on one line; in the turn in which a function arrives, it is what BFCL's runner says."""
    if arriving is not None:
        if messages:
            raise ValueError("nobody may speak in the turn in which a function arrives")
        return f"{arriving}: {ARRIVES}"
    said = " ".join(" ".join(_message(one) for one in _list(messages)).split())
    if not said:
        raise ValueError("in one turn nothing is said")
    return said


def _message(message: Any) -> str:
    text = message["content"]
    if message["role"] != "user" or not isinstance(text, str):
        raise TypeError("in each turn the user must say a text")
    return text


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError("there is no list where one is needed")
    return cast("list[Any]", value)


def _texts(value: Any) -> Iterator[str]:
    for one in _list(value):
        if not isinstance(one, str):
            raise TypeError("a list has something other than texts")
        yield one
