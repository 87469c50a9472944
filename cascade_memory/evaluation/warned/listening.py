"""What an agent has been told of known mistakes, and what it does about them. Declared, and the same in every arm.

* Before each action the agent looks whether it has been told that this action is a mistake. What it was told stays with it
  until the task ends.
* It never does an action of which it has been told. If it was told what worked instead, it does that once, in the words of its
  own task (for SQL: only if its own plan has no other query left). In any case its plan then goes on as if the world had
  refused the action.
* This also holds for tasks that it solves alone, so that a false warning can spoil them.
* ``remembered`` is the probability with which it still thinks, at a later action, of what it was told. What it is told at an
  action, it heeds there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Act:
    """What an agent is about to do: an action in words, or a call of a tool."""

    action: str
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A known mistake, as far as the agent can read it: in which task, which action, and what worked instead."""

    query: str
    action: str
    instead: str
    is_meant: Callable[[Act], bool]  # whether an action is this mistake


class Ask(Protocol):
    """Says of an action that it is a known mistake, at the moment when it is about to be done."""

    def __call__(self, act: Act) -> Told | None:
        """Return a warning, or None."""
        ...


class Listener:
    """An agent's ear during one task.

    >>> told = Told("open the box", "open box 1", "", is_meant=lambda act: act.action == "open box 1")
    >>> listener = Listener([told])
    >>> listener.before(Act("open box 2")) is None, listener.before(Act("open box 1")) is told, listener.heeded
    (True, True, 1)
    """

    def __init__(
        self, at_the_start: Sequence[Told] = (), ask: Ask | None = None, *, remembered: float = 1.0, seed: int = 0
    ) -> None:
        self.told = list(at_the_start)
        self.heeded = 0
        self._ask, self._remembered, self._rng = ask, remembered, np.random.default_rng([seed, 41])

    def before(self, act: Act) -> Told | None:
        """Return what the agent heeds at this action: it does not do it then."""
        found = self._remembers(act)
        if found is None and self._ask is not None:
            found = self._ask(act)
            if found is not None:
                self.told.append(found)
        self.heeded += found is not None
        return found

    def _remembers(self, act: Act) -> Told | None:
        about = next((one for one in self.told if one.is_meant(act)), None)
        return about if about is not None and (self._remembered >= 1 or self._rng.random() < self._remembered) else None
