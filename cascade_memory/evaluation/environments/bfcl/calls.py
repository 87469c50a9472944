"""Calls of functions as text: they are parsed and never evaluated, and their arguments are plain values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from cascade_memory.errors import InvalidInput

MOST_CHARACTERS = 20_000  # of one call; the longest right one has 7,000
_LARGEST = 1e15  # an integer above it is no longer exact as a float, and arithmetic with huge ones takes for ever
_DEEPEST = 20  # lists within lists
_TURN = re.compile(r"turn (\d{1,3}): (.*)")
_NOTHING = "nothing"

Value: TypeAlias = "str | int | float | bool | list[Value] | tuple[Value, ...] | dict[Value, Value] | None"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function: its name, the arguments by place, and the arguments by name."""

    name: str
    by_place: tuple[Value, ...] = ()
    by_name: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        """Return the call as Python writes it."""
        written = [*map(repr, self.by_place), *(f"{name}={value!r}" for name, value in self.by_name)]
        return f"{self.name}({', '.join(written)})"


Turns: TypeAlias = Sequence[Sequence[Call]]  # the calls of each turn


def read_call(text: str) -> Call:
    """Parse a call. It is refused unless it calls a function by its bare name with plain values.

    >>> read_call("mv('a.txt', destination = 'archive')")
    Call(name='mv', by_place=('a.txt',), by_name=(('destination', 'archive'),))
    >>> read_call("open('a.txt').read()")
    Traceback (most recent call last):
        ...
    cascade_memory.errors.InvalidInput: only a function itself can be called, by its name, as in f(x=1)
    """
    found = _statements(text)
    if len(found) != 1:
        raise InvalidInput(f"one call is needed, not {len(found)}")
    return _call(found[0])


def write_turns(turns: Turns) -> str:
    r"""Write the calls of each turn on a line of its own.

    >>> print(write_turns([[Call("ls"), Call("cd", ("docs",))], []]))
    turn 1: ls(); cd('docs')
    turn 2: nothing
    """
    return "\n".join(f"turn {turn}: {'; '.join(map(str, calls)) or _NOTHING}" for turn, calls in enumerate(turns, start=1))


def read_turns(text: str) -> tuple[tuple[Call, ...], ...]:
    r"""Read what ``write_turns`` wrote.

    >>> read_turns("turn 1: nothing\nturn 2: ls()")
    ((), (Call(name='ls', by_place=(), by_name=()),))
    """
    turns: list[tuple[Call, ...]] = []
    for line in text.split("\n"):
        found = _TURN.fullmatch(line)
        if found is None or int(found[1]) != len(turns) + 1:
            raise InvalidInput(f"not the calls of turn {len(turns) + 1}: {line!r:.100}")
        turns.append(() if found[2] == _NOTHING else tuple(map(_call, _statements(found[2], most=100 * MOST_CHARACTERS))))
    return tuple(turns)


def _statements(text: str, most: int = MOST_CHARACTERS) -> list[ast.stmt]:
    if len(text) > most:
        raise InvalidInput(f"a call may have {MOST_CHARACTERS:,} characters, not {len(text):,}")
    try:
        return ast.parse(text.strip()).body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise InvalidInput(f"this is no call: {text!r:.100}") from error


def _call(statement: ast.stmt) -> Call:
    node = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise InvalidInput("only a function itself can be called, by its name, as in f(x=1)")
    by_name = [(word.arg, _value(word.value)) for word in node.keywords if word.arg is not None]
    if len(by_name) < len(node.keywords) or len(dict(by_name)) < len(by_name):
        raise InvalidInput("each argument needs a name of its own")
    return Call(node.func.id, tuple(map(_value, node.args)), tuple(by_name))


def _value(node: ast.expr) -> Value:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise InvalidInput("an argument must be a plain value: a text, a number, a list, ... and not an expression") from error
    for one in _inner(value, _DEEPEST):
        if isinstance(one, (int, float)) and not abs(one) <= _LARGEST:
            raise InvalidInput(f"a number must be between {-_LARGEST:g} and {_LARGEST:g}")
    return cast("Value", value)


def _inner(value: object, depth: int) -> Iterator[object]:
    """Yield a value and the values within it; raise an error for a kind of value that JSON does not have."""
    if depth == 0:
        raise InvalidInput(f"an argument may hold lists within lists up to {_DEEPEST} deep")
    yield value
    if isinstance(value, dict):
        for pair in cast("dict[object, object]", value).items():
            yield from _inner(pair, depth - 1)
    elif isinstance(value, (list, tuple)):
        for one in cast("Sequence[object]", value):
            yield from _inner(one, depth - 1)
    elif not (value is None or isinstance(value, (str, int, float))):
        raise InvalidInput(f"an argument must be a text, a number, a list, ..., not of the type {type(value).__name__}")
