"""The names of a script, of a function and of a comprehension. Only the standard library is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
