"""The operators of a script; those that can make something huge in one step are checked first."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

_MOST_BITS, _MOST_ITEMS = 100_000, 10_000_000
_SEQUENCES = (str, list, tuple)


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1 and base.bit_length() * exponent > _MOST_BITS:
        raise ValueError(f"the result of {type(base).__name__} ** {type(exponent).__name__} is too large")
    return base**exponent


def _shifted(value: Any, by: Any) -> Any:
    if isinstance(by, int) and by > _MOST_BITS:
        raise ValueError("the result of << is too large")
    return value << by


def _times(one: Any, other: Any) -> Any:
    for sequence, count in ((one, other), (other, one)):
        if isinstance(sequence, _SEQUENCES) and isinstance(count, int) and len(sequence) * count > _MOST_ITEMS:
            raise ValueError(f"the result of * has too many items: {len(sequence) * count:,}")
    if isinstance(one, int) and isinstance(other, int) and one.bit_length() + other.bit_length() > _MOST_BITS:
        raise ValueError("the result of * is too large")
    return one * other


BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _times,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.LShift: _shifted,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}


def power(base: Any, exponent: Any) -> Any:
    """Compute a power; raise ``ValueError`` if it would be huge."""
    return _power(base, exponent)
