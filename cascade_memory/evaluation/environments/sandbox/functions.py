"""Functions that a script defines, and the names of a script, of a function and of a comprehension.

The functions are objects of ours, without code objects, frames or globals that could be reached. Only the standard library is
imported here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MOST_CALLS = 60  # functions that may be under way inside one another


class Scope:
    """Names and their values; a missing name is looked up in the outer scopes, and at last among the given names."""

    def __init__(self, outer: Scope | None = None, given: Mapping[str, Any] | None = None) -> None:
        self.names: dict[str, Any] = {}
        self._outer, self._given = outer, given or {}
        self._elsewhere: dict[str, Scope] = {}  # names declared global or nonlocal

    def get(self, name: str) -> Any:
        """Look up a name; raise ``NameError`` if it is not defined."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            if scope._outer is None and name in scope._given:
                return scope._given[name]
            scope = scope._outer
        raise NameError(f"name {name!r} is not defined here")

    def set(self, name: str, value: Any) -> None:
        """Give a name a value."""
        self._elsewhere.get(name, self).names[name] = value

    def remove(self, name: str) -> None:
        """Delete a name; raise ``NameError`` if it is not defined."""
        place = self._elsewhere.get(name, self)
        if name not in place.names:
            raise NameError(f"name {name!r} is not defined here")
        del place.names[name]

    def declare_global(self, name: str) -> None:
        """Let assignments to a name go to the outermost scope."""
        scope = self
        while scope._outer is not None:
            scope = scope._outer
        self._elsewhere[name] = scope

    def declare_nonlocal(self, name: str) -> None:
        """Let assignments to a name go to the nearest outer scope that has the name."""
        scope = self._outer
        while scope is not None and name not in scope.names:
            scope = scope._outer
        if scope is None:
            raise NameError(f"name {name!r} is not defined outside")
        self._elsewhere[name] = scope


class Depth:
    """Counts the calls that are under way."""

    now = 0


class Function:
    """A function or lambda of a script."""

    def __init__(
        self, name: str, parameters: ast.arguments, defaults: Sequence[Any], keyword_defaults: Sequence[Any],
        closure: Scope, body: Callable[[Scope], Any], depth: Depth,
    ) -> None:  # fmt: skip
        self._name, self._closure, self._body, self._depth = name, closure, body, depth
        self._positional = [one.arg for one in (*parameters.posonlyargs, *parameters.args)]
        self._keywords = [one.arg for one in parameters.kwonlyargs]
        self._rest = parameters.vararg.arg if parameters.vararg else None
        self._others = parameters.kwarg.arg if parameters.kwarg else None
        with_default = self._positional[len(self._positional) - len(defaults) :]
        given = [(one, value) for one, value in zip(self._keywords, keyword_defaults, strict=True) if value is not _NOTHING]
        self._defaults = {**dict(zip(with_default, defaults, strict=True)), **dict(given)}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the function."""
        scope = Scope(self._closure)
        for name, value in self._bound(args, keywords).items():
            scope.set(name, value)
        if self._depth.now >= MOST_CALLS:
            raise RecursionError(f"more than {MOST_CALLS} functions are under way inside one another")
        self._depth.now += 1
        try:
            return self._body(scope)
        finally:
            self._depth.now -= 1

    def _bound(self, args: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        bound = {**self._defaults, **dict(zip(self._positional, args, strict=False))}
        if self._rest is not None:
            bound[self._rest] = tuple(args[len(self._positional) :])
        elif len(args) > len(self._positional):
            raise TypeError(f"{self._name}() takes {len(self._positional)} arguments, and {len(args)} were given")
        others: dict[str, Any] = {}
        for name, value in keywords.items():
            if name in self._positional[: len(args)]:
                raise TypeError(f"{self._name}() got two values for {name!r}")
            target = bound if name in self._positional or name in self._keywords else others
            target[name] = value
        if self._others is not None:
            bound[self._others] = others
        elif others:
            raise TypeError(f"{self._name}() has no parameter {next(iter(others))!r}")
        missing = [name for name in (*self._positional, *self._keywords) if name not in bound]
        if missing:
            raise TypeError(f"{self._name}() lacks a value for {missing[0]!r}")
        return bound

    def __repr__(self) -> str:
        return f"<function {self._name}>"


class _Nothing:
    """Stands for the default of a keyword-only parameter that has none."""


_NOTHING = _Nothing()
NOTHING: Any = _NOTHING
