"""Suggests the right name for a misspelt option of ``CascadeMemory``; Python's own error does not."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Concatenate, ParamSpec, TypeVar

from cascade_memory.memory.options import Ranking, Retention, Trust

_Options = ParamSpec("_Options")
_Self = TypeVar("_Self")
_GROUPS = {"ranking": Ranking, "retention": Retention, "trust": Trust}


def check_names(options: Iterable[str], known: Iterable[str]) -> None:
    """Raise a ``TypeError`` for the first unknown option; it names the most similar known one, or lists all if none is similar.

    An option of a group, such as ``Ranking``, is named with the call that takes it.

    >>> check_names(["embeder"], ["path", "embedder"])
    Traceback (most recent call last):
    TypeError: CascadeMemory takes no option 'embeder'; did you mean 'embedder'?
    >>> check_names(["holdout"], ["path", "embedder"])
    Traceback (most recent call last):
    TypeError: CascadeMemory takes no option 'holdout'; did you mean ranking=Ranking(holdout=...)?
    """
    known = list(known)
    calls = {name: repr(name) for name in known} | {
        field.name: f"{option}={group.__name__}({field.name}=...)"
        for option, group in _GROUPS.items()
        for field in fields(group)
    }
    for name in options:
        if name == "actor":
            raise TypeError("CascadeMemory takes no option 'actor'; write CascadeMemory(...).acting(actor=...)")
        if name not in known:
            close = difflib.get_close_matches(name, calls, n=1)
            hint = f"; did you mean {calls[close[0]]}?" if close else f"; there are {', '.join(known)}"
            raise TypeError(f"CascadeMemory takes no option {name!r}{hint}")


def suggesting(init: Callable[Concatenate[_Self, _Options], None]) -> Callable[Concatenate[_Self, _Options], None]:
    """Let a constructor check the names of its options first; a decorator."""
    known = [name for name in inspect.signature(init).parameters if name != "self"]

    @functools.wraps(init)
    def checked(self: _Self, /, *args: _Options.args, **options: _Options.kwargs) -> None:
        check_names(options, known)
        init(self, *args, **options)

    return checked
