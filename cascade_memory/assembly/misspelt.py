"""Suggests the right name for a misspelt option of ``CascadeMemory``; Python's own error does not."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Concatenate, ParamSpec, TypeVar

_Options = ParamSpec("_Options")
_Self = TypeVar("_Self")


def check_names(options: Iterable[str], known: Iterable[str]) -> None:
    """Raise a ``TypeError`` for the first unknown option; it names the most similar known one, or lists all if none is similar.

    >>> check_names(["embeder"], ["path", "embedder"])
    Traceback (most recent call last):
    TypeError: CascadeMemory takes no option 'embeder'; did you mean 'embedder'?
    """
    known = list(known)
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
            raise TypeError(f"CascadeMemory takes no option {name!r}{hint}")


def suggesting(init: Callable[Concatenate[_Self, _Options], None]) -> Callable[Concatenate[_Self, _Options], None]:
    """Let a constructor check the names of its options first; a decorator."""
    known = [name for name in inspect.signature(init).parameters if name != "self"]

    @functools.wraps(init)
    def checked(self: _Self, /, *args: _Options.args, **options: _Options.kwargs) -> None:
        check_names(options, known)
        init(self, *args, **options)

    return checked
