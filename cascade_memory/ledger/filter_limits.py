"""Reads a filter as its caller passed it, and refuses one that no database could carry out in time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, cast

from cascade_memory.domain.quoting import quoted
from cascade_memory.domain.validation import MAX_ID_CHARS, MAX_SOLUTION_CHARS, check_text, exact
from cascade_memory.errors import InvalidInput

_MAX_DEPTH = 16
_MAX_CONDITIONS = 200  # SQLite joins up to a thousand, and each is a search of its own
_MAX_OPTIONS = 10_000  # values, of all conditions together
_MAX_CHARS = 4 * MAX_SOLUTION_CHARS
_INT64 = 2**63
_EXAMPLE = 'for example {"tool": "search"} or {"$and": [{"tool": "search"}, {"steps": {"$lte": 5}}]}'


def plain_filter(where: object) -> dict[str, Any]:
    """Return a filter as plain dicts, lists and values; raise if it is no filter, or too large.

    >>> plain_filter({"$or": ({"tool": "search"}, {"steps": {"$in": (1, 2)}})})
    {'$or': [{'tool': 'search'}, {'steps': {'$in': [1, 2]}}]}
    """
    return _Reading().conditions(where, 0)


def plain_value(value: object) -> str | int | float | bool:
    """Return a value of a filter as a plain str, int, float or bool; raise if no filter can compare with it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return check_text(value, "a value in where", MAX_SOLUTION_CHARS, allow_empty=True)
    number = exact(value)
    if number is None:
        raise InvalidInput(f"cannot filter by {quoted(value)}; compare with str, int, float or bool")
    if number != number:
        raise InvalidInput("where compares with nan, which equals nothing; leave that condition out")
    if isinstance(number, int) and not -_INT64 <= number < _INT64:
        raise InvalidInput("where compares with an integer beyond 64 bits, and no stored integer is that large")
    return number


class _Reading:
    """Reads a filter, and counts its conditions, values and characters on the way."""

    def __init__(self) -> None:
        self._conditions = self._options = self._chars = 0

    def conditions(self, where: object, depth: int) -> dict[str, Any]:
        if not isinstance(where, Mapping):
            raise InvalidInput(f"where must be a non-empty mapping, {_EXAMPLE}")
        if depth > _MAX_DEPTH:
            raise InvalidInput(f"where is nested more than {_MAX_DEPTH} deep")
        found: dict[str, Any] = {}
        for key, wanted in cast("Mapping[object, object]", where).items():
            self._count()
            if not isinstance(key, str):
                raise InvalidInput(f"where has the unknown key {quoted(key)}; {_EXAMPLE}")
            name = check_text(key, "a name in where", MAX_ID_CHARS)
            if name in ("$and", "$or"):
                found[name] = [self.conditions(one, depth + 1) for one in self._listed(wanted, name)]
            elif name.startswith("$"):
                raise InvalidInput(f"where has the unknown key {name!r}; {_EXAMPLE}")
            else:
                found[name] = self._on_field(wanted)
        if not found:
            raise InvalidInput(f"where must be a non-empty mapping, {_EXAMPLE}")
        return found

    def _on_field(self, wanted: object) -> Any:
        if not isinstance(wanted, Mapping):
            return self._value(wanted)
        found: dict[str, Any] = {}
        for operator, operand in cast("Mapping[object, object]", wanted).items():
            self._count()
            name = check_text(operator, "an operator in where", MAX_ID_CHARS)
            many = name in ("$in", "$nin")
            found[name] = [self._value(one) for one in self._listed(operand, name)] if many else self._value(operand)
        return found

    def _listed(self, options: object, operator: str) -> list[Any]:
        if not isinstance(options, (list, tuple)) or not (some := list(itertools.islice(options, _MAX_OPTIONS + 1))):
            raise InvalidInput(f"{operator} takes a non-empty list, {_EXAMPLE}")
        return some

    def _value(self, value: object) -> str | int | float | bool:
        plain = plain_value(value)
        self._options += 1
        self._chars += len(plain) if isinstance(plain, str) else 0
        if self._options > _MAX_OPTIONS:
            raise InvalidInput(f"where takes at most {_MAX_OPTIONS:,} values; filter by fewer, or in several calls")
        if self._chars > _MAX_CHARS:
            raise InvalidInput(f"where takes values of {_MAX_CHARS:,} characters in all; filter by shorter ones")
        return plain

    def _count(self) -> None:
        self._conditions += 1
        if self._conditions > _MAX_CONDITIONS:
            raise InvalidInput(f"where takes at most {_MAX_CONDITIONS} conditions; $in compares with many values at once")
