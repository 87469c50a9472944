"""A part of the ledger: who made the cases and reported the outcomes, and whose cases are in quarantine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.actions import NewAction
from cascade_memory.ports.policy import Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Testimony:
    """An outcome, read as what its reporter says about the cases that one recall found.

    ``reporter`` is the actor who reported it; None stands for a person, or for the host itself. ``recall`` is the recall's key.
    ``predicted`` is the success that was expected of the shown cases, nan if none were shown.
    """

    outcome: int
    recall: int
    reporter: str | None
    reward: float
    predicted: float
    cases: NDArray[np.int64]
    chosen: NDArray[np.int64]
    shown: bool
    agreement: Floats | None


class Actors(Protocol):
    """Reads what is known of actors, and puts the cases of an actor into quarantine.

    A case counts as having no author if a person added it, wrote it as a correction, or pinned it: no actor's record matters
    for it. A case that a person has hidden stays hidden, whatever is decided about its actor.
    """

    def any(self, namespace: int) -> bool:
        """Return whether any case of a namespace has an author."""
        ...

    def authors(self, keys: Sequence[int]) -> dict[int, str]:
        """Return the authors of cases by key; cases without one are left out, evicted and expired ones are not."""
        ...

    def testimonies(self, namespace: int, limit: int, *, until: int = 2**62) -> list[Testimony]:
        """Return the last ``limit`` outcomes up to ``until`` that are learned from, oldest first, one entry per recall."""
        ...

    def testimony(self, outcome: int) -> list[Testimony]:
        """Return one outcome, one entry per recall; empty if it is not learned from."""
        ...

    def decided(self, namespace: int) -> Mapping[str, bool]:
        """Return what was decided, by actor: True if the actor is in quarantine, False if it was released."""
        ...

    def quarantine(self, namespace: int, actor: str, action: NewAction, *, unless_decided: bool = False) -> int | None:
        """Put an actor's present and later cases into quarantine, durably; return how many cases that hides.

        Return None if the actor was in quarantine already and no other case had to be hidden, or, with ``unless_decided``, if
        any decision about the actor stands.
        """
        ...

    def release(self, namespace: int, actor: str, action: NewAction) -> int | None:
        """End the quarantine of an actor, durably; return how many of its cases are thus shown again.

        Return None if the actor was released before and no case had to be shown.
        """
        ...
