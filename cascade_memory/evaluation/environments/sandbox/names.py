"""The built-in names and the modules that a script may use."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from cascade_memory.evaluation.environments.sandbox.columns import mean, median
from cascade_memory.evaluation.environments.sandbox.expressions import power
from cascade_memory.evaluation.environments.sandbox.values import Module

_MOST_PRINTED = 2_000
_OF_RE = ("compile", "escape", "findall", "finditer", "fullmatch", "match", "search", "split", "sub")


class ToolError(Exception):
    """The error that a script gets if a tool refuses what the script asked for."""


ERRORS: Mapping[str, type[Exception]] = {
    one.__name__: one
    for one in (
        *(
            Exception,
            ArithmeticError,
            AssertionError,
            AttributeError,
            ImportError,
            IndexError,
            KeyError,
            LookupError,
            NameError,
        ),
        *(OverflowError, RuntimeError, StopIteration, TypeError, ValueError, ZeroDivisionError, ToolError),
    )
}
_FUNCTIONS: Mapping[str, Any] = {
    one.__name__: one
    for one in cast(
        "tuple[Any, ...]",
        (abs, all, any, bool, chr, dict, divmod, enumerate, filter, float, frozenset, int, isinstance, iter, len, list, map,
         max, min, next, ord, range, repr, reversed, round, set, sorted, str, sum, tuple, zip),
    )
}  # fmt: skip


class Printed:
    """Collects what a script prints, up to a limit."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, *values: Any, sep: str = " ", end: str = "\n") -> None:
        """Add the values to the text, as ``print`` would write them."""
        self.text = (self.text + sep.join(map(str, values)) + end)[:_MOST_PRINTED]


def _checked(name: str, function: Callable[..., Any], most: int) -> Callable[..., Any]:
    """Wrap a function of ``math`` so that it refuses whole numbers above ``most``, which would take too long."""

    def run(*numbers: Any) -> Any:
        if any(isinstance(one, int) and abs(one) > most for one in numbers):
            raise ValueError(f"math.{name} takes numbers up to {most:,} here")
        return function(*numbers)

    return run


def _mode(values: Iterable[Any]) -> Any:
    counted = Counter(values).most_common(1)
    if not counted:
        raise ValueError("the mode of no values")
    return counted[0][0]


def _variance(values: Iterable[Any], *, sample: bool = True) -> float:
    numbers = list(values)
    if len(numbers) <= sample:
        raise ValueError("the deviation needs more values")
    middle = mean(numbers)
    return sum((one - middle) ** 2 for one in numbers) / (len(numbers) - sample)


def _deviation(values: Iterable[Any]) -> float:
    return math.sqrt(_variance(values))


def _deviation_of_all(values: Iterable[Any]) -> float:
    return math.sqrt(_variance(values, sample=False))


def modules() -> dict[str, Module]:
    """Build the modules that a script may import, anew for each script."""
    large = {"factorial": 5_000, "comb": 5_000, "perm": 5_000}
    named = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
    return {
        "math": Module("math", {**named, **{name: _checked(name, named[name], most) for name, most in large.items()}}),
        "re": Module(
            "re",
            {
                **{name: getattr(re, name) for name in _OF_RE},
                **{name: getattr(re, name) for name in ("IGNORECASE", "I", "MULTILINE", "M", "DOTALL", "S")},
            },
        ),
        "datetime": Module(
            "datetime",
            {name: getattr(datetime, name) for name in ("datetime", "date", "time", "timedelta")},
        ),
        "statistics": Module(
            "statistics",
            {
                "mean": mean, "fmean": mean, "median": median, "mode": _mode, "variance": _variance,
                "stdev": _deviation,
                "pstdev": _deviation_of_all,
            },
        ),
        "collections": Module(
            "collections", {"Counter": Counter, "OrderedDict": OrderedDict, "defaultdict": defaultdict, "deque": deque}
        ),
    }  # fmt: skip


def given_names(printed: Printed, tools: Mapping[str, Any]) -> dict[str, Any]:
    """Return every name that a script finds at its start."""
    return {**_FUNCTIONS, **ERRORS, "pow": power, "print": printed, "__name__": "__main__", **tools}
