"""Reads data that a model wrote: JSON, or Python's way of writing the same, which models often answer with."""

from __future__ import annotations

import json
import math
import re
from typing import Any

MOST_CHARS = 200_000  # of a Python-quoted value; a longer one must be JSON
_MOST_DEPTH = 32

_SPACE = re.compile(r"\s*")
_TEXT = re.compile(r"""'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)\"""", re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d{1,300}(?:\.\d{0,300})?(?:[eE][-+]?\d{1,3})?(?![\w.])")
_WORD = re.compile(r"(?:True|False|None|true|false|null)\b")
_WORDS = {"true": True, "false": False, "none": None, "null": None}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
_CLOSES = {"[": "]", "(": ")", "{": "}"}


def read_literal(text: str) -> Any:
    r"""Read a whole text as JSON or as a Python literal; None if it is neither.

    Nothing is evaluated. An object that names a key twice is refused, since it gives two answers at once.

    >>> read_literal('{"Li": ["theft"]}'), read_literal("{'Li': ['theft'], 'O\\'Neil': None,}")
    ({'Li': ['theft']}, {'Li': ['theft'], "O'Neil": None})
    >>> read_literal("__import__('os')"), read_literal('{"Li": "theft", "Li": "fraud"}')
    (None, None)
    """
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        pass
    if len(text) > MOST_CHARS:
        return None
    found = literal_at(text, _after_space(text, 0))
    return found[0] if found is not None and _after_space(text, found[1]) == len(text) else None


def literal_at(text: str, at: int) -> tuple[Any, int] | None:
    """Read the JSON or the Python literal that begins at the index ``at``; return it with the index where it ends.

    >>> literal_at("so {'a': 1} it is", 3)
    ({'a': 1}, 11)
    """
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        pass
    try:
        return _value(text[: at + MOST_CHARS], at, 0)
    except ValueError:
        return None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _number(text: str) -> int | float:
    number = float(text) if set(text) & set(".eE") else int(text)
    if not math.isfinite(number):
        raise ValueError("not finite")
    return number


def _refused(text: str) -> None:
    raise ValueError(f"{text} is no number")


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_float=_number, parse_constant=_refused)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    if depth > _MOST_DEPTH:
        raise ValueError("nested too deeply")
    opening = text[at : at + 1]
    if opening and opening in _CLOSES:
        return _mapping(text, at, depth) if opening == "{" else _sequence(text, at, depth)
    if found := _TEXT.match(text, at):
        return _unescaped(found[1] if found[1] is not None else found[2]), found.end()
    if found := _NUMBER.match(text, at):
        return _number(found[0]), found.end()
    if found := _WORD.match(text, at):
        return _WORDS[found[0].lower()], found.end()
    raise ValueError("no value")


def _sequence(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    closing, values, at = _CLOSES[text[at]], list[Any](), _after_space(text, at + 1)
    while text[at : at + 1] != closing:
        value, at = _value(text, at, depth + 1)
        values.append(value)
        at = _separated(text, at, closing)
    return values, at + 1


def _mapping(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    pairs, at = list[tuple[str, Any]](), _after_space(text, at + 1)
    while text[at : at + 1] != "}":
        key, at = _value(text, at, depth + 1)
        if not isinstance(key, str | int | float) or text[(at := _after_space(text, at)) : at + 1] != ":":
            raise ValueError("no key")
        value, at = _value(text, _after_space(text, at + 1), depth + 1)
        pairs.append((str(key), value))
        at = _separated(text, at, "}")
    return _distinct(pairs), at + 1


def _separated(text: str, at: int, closing: str) -> int:
    """Return the place of the next value or of the closing bracket; a comma may stand before either."""
    at = _after_space(text, at)
    if text[at : at + 1] == ",":
        return _after_space(text, at + 1)
    if text[at : at + 1] != closing:
        raise ValueError("no comma")
    return at


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code is None:
        return _ESCAPED.get(found[4], found[4])
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else "\ufffd"
