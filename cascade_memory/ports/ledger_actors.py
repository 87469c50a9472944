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
    """An outcome as the word of an actor (None: of a person, or of the host itself) about the cases that one recall found.

    ``recall`` is the recall's key. ``predicted`` is the success that was expected of what was shown, nan if nothing was.
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
    """Reads what is known of actors, and puts the cases of one into quarantine.

    The cases that a person added, corrected to or pinned have no author here: they need nobody's record. What a person has
    hidden stays hidden whatever is decided about its actor.
    """

    def any(self, namespace: int) -> bool:
        """Whether any case of a namespace has an author."""
        ...

    def authors(self, keys: Sequence[int]) -> dict[int, str]:
        """Return the authors of cases by key, for those that have one; also of cases that have made room since."""
        ...

    def testimonies(self, namespace: int, limit: int, *, until: int = 2**62) -> list[Testimony]:
        """Return the last ``limit`` outcomes that are learned from, oldest first, one entry per recall."""
        ...

    def testimony(self, outcome: int) -> list[Testimony]:
        """Return one outcome; empty if it is not learned from."""
        ...

    def decided(self, namespace: int) -> Mapping[str, bool]:
        """Return the actors about whom it was decided: True if they are in quarantine, False if they were released."""
        ...

    def quarantine(self, namespace: int, actor: str, action: NewAction, *, unless_decided: bool = False) -> int | None:
        """Put an actor's cases into quarantine, durably, and later ones as well; return how many that hides.

        None if the actor was there and had no other case, or with ``unless_decided`` if any decision about it stands.
        """
        ...

    def release(self, namespace: int, actor: str, action: NewAction) -> int | None:
        """Show an actor's cases again, durably; return how many that shows. None if it was released before."""
        ...
