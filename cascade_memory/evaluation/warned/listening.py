"""What an agent does about known mistakes of which it is warned: declared here, and the same in every arm.

* Before each action the agent checks whether it was told that this action is a mistake. It keeps what it was told until the
  task ends.
* It does not do an action that it was told to be a mistake. If it was told what worked instead, it does that once, in the words
  of its own task (for SQL: only if its own plan has no other query left). In any case its plan then goes on as if the world had
  refused the action.
* What it does at the end of its plan, if the task is not solved, is declared for the whole run (``Run.options``). With
  ``NEVER``, it gives up. With ``LAST_RESORT``, it now does the first action that it left out because of a warning, and its plan
  goes on from there; this happens once in a task.
* All this also holds for tasks that it solves alone, so that a false warning can spoil them.
* ``remembered`` is the probability with which it still remembers at a later action what it was told. If it is told at the
  action itself, it always heeds that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from cascade_memory import Step

NEVER, LAST_RESORT = "never", "last resort"  # whether an agent does what it was warned of when nothing else is left
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Act:
    """What an agent is about to do: an action in words, or a call of a tool."""

    action: str
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    done: Sequence[Step] = field(default=(), compare=False, repr=False)  # the steps of the run so far


@dataclass(frozen=True, slots=True)
class Told:
    """A known mistake as the agent is told of it: the task and the action of the mistake, and what worked instead."""

    query: str
    action: str
    instead: str
    is_meant: Callable[[Act], bool]  # whether an action is this mistake


class Ask(Protocol):
    """Says whether an action is a known mistake, at the moment when the action is about to be done."""

    def __call__(self, act: Act) -> Told | None:
        """Return the known mistake, or None if the action is none."""
        ...


class Listener:
    """Keeps what an agent is told of known mistakes during one task, and says which of them it heeds.

    >>> told = Told("open the box", "open box 1", "", is_meant=lambda act: act.action == "open box 1")
    >>> listener = Listener([told])
    >>> listener.before(Act("open box 2")) is None, listener.before(Act("open box 1")) is told, listener.heeded
    (True, True, 1)
    """

    def __init__(
        self,
        at_the_start: Sequence[Told] = (),
        ask: Ask | None = None,
        *,
        remembered: float = 1.0,
        seed: int = 0,
        heeds: str = NEVER,
    ) -> None:
        self.told = list(at_the_start)
        self.heeded = 0
        self.declined: Act | None = None  # the first action that was not done because of a warning
        self.insisted: Act | None = None  # the action that is done although the agent was warned of it
        self._heeds = heeds
        self._ask, self._remembered, self._rng = ask, remembered, np.random.default_rng([seed, 41])

    def before(self, act: Act) -> Told | None:
        """Return the known mistake for which the agent does not do this action; None if it does the action."""
        if act == self.insisted:
            return None
        found = self._remembers(act)
        if found is None and self._ask is not None:
            found = self._ask(act)
            if found is not None:
                self.told.append(found)
        self.heeded += found is not None
        if found is not None and self.declined is None:
            self.declined = act
        return found

    def last_resort(self) -> Act | None:
        """Return the declined action that the agent does as a last resort, at most once in a task; None if there is none.

        >>> listener = Listener([Told("", "jump", "", is_meant=lambda act: act.action == "jump")], heeds=LAST_RESORT)
        >>> listener.before(Act("jump")) is None, listener.last_resort(), listener.before(Act("jump")) is None
        (False, Act(action='jump', tool=None, arguments=None), True)
        >>> listener.last_resort() is None
        True
        """
        if self._heeds != LAST_RESORT or self.insisted is not None:
            return None
        self.insisted = self.declined
        return self.insisted

    def _remembers(self, act: Act) -> Told | None:
        about = next((one for one in self.told if one.is_meant(act)), None)
        return about if about is not None and (self._remembered >= 1 or self._rng.random() < self._remembered) else None


def from_the_declined(plan: Sequence[T], do: Callable[[T], None], listener: Listener) -> Sequence[T]:
    """Carry out a plan; return the part of the plan that begins where an action was first declined.

    >>> listener = Listener([Told("", "jump", "", is_meant=lambda act: act.action == "jump")])
    >>> from_the_declined(["walk", "jump", "run"], lambda one: print(one, listener.before(Act(one)) is None), listener)
    walk True
    jump False
    run True
    ['jump', 'run']
    """
    first = len(plan)
    for place, one in enumerate(plan):
        do(one)
        if listener.declined is not None:
            first = min(first, place)
    return plan[first:]
