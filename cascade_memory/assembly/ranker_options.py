"""Checks ``ranker_options``: the names and types of the options of a ranker that is named by a string."""

from __future__ import annotations

import difflib
import inspect
import math
import types
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, Literal, Union, cast, get_args, get_origin

from cascade_memory.domain.quoting import quoted
from cascade_memory.errors import InvalidInput

_OWN = frozenset(
    {"self", "options", "model", "dimension", "theta", "start", "hindsight", "lean_on", "credit"}
)  # parameters that users do not set


def check_ranker_options(ranker: str, given: object, makers: tuple[Callable[..., Any], ...]) -> dict[str, Any]:
    """Check that one of ``makers`` has a parameter with the name and type of each option; return a copy of the options.

    >>> from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
    >>> check_ranker_options("neural-linlogucb", {"alpha": 0}, (NeuralLinLogUCB,))
    {'alpha': 0}
    """
    if not isinstance(given, Mapping):
        raise InvalidInput(f"ranker_options must be a mapping, such as {{'alpha': 0.1}}, not a {type(given).__name__}")
    hints = {name: hint for maker in makers for name, hint in _parameters(maker).items()}
    options = dict(cast("Mapping[Any, Any]", given))
    for name, value in options.items():
        if name not in hints:
            close = difflib.get_close_matches(str(name), hints, n=1)
            meant = f" (did you mean {close[0]!r}?)" if close else ""
            takes = ", ".join(hints) if hints else "no options"
            raise InvalidInput(f"the ranker {ranker!r} takes no option {name!r}{meant}; it takes {takes}")
        if not _fits(value, hints[name]):
            raise InvalidInput(f"ranker_options: {name!r} must be {_in_words(hints[name])}, not {quoted(value)}")
    return options


def _parameters(maker: Callable[..., Any]) -> dict[str, Any]:
    function: Any = maker.__init__ if inspect.isclass(maker) else maker
    options = {name: one for name, one in inspect.signature(maker).parameters.items() if name not in _OWN}
    # Hints are resolved one by one: the hint of a parameter that users do not set may name a type that is not imported there.
    return {name: eval(str(one.annotation), function.__globals__) for name, one in options.items()}


def _fits(value: object, hint: Any) -> bool:
    if hint is Any:
        return True
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if hint in (float, int):
        kind = Real if hint is float else Integral
        return type(value) is not bool and isinstance(value, kind) and 0.0 <= float(value) < math.inf
    if origin is not None:  # a function
        return callable(value)
    return isinstance(value, hint)


def _in_words(hint: Any) -> str:
    known = {float: "a number of at least 0", int: "a whole number of at least 0", bool: "True or False", str: "a text"}
    if hint in known:
        return known[hint]
    origin = get_origin(hint)
    if origin is Literal:
        return " or ".join(repr(one) for one in get_args(hint))
    if origin in (Union, types.UnionType):
        return " or ".join("None" if one is type(None) else _in_words(one) for one in get_args(hint))
    return "a function" if origin is not None else f"a {hint.__name__}"
