"""What one outcome says about actors, and a counter that forgets the oldest entries. Actors are numbers here."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Floats

TRUSTED = -1  # whoever needs no record, such as a person


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heard:
    """The parts of an outcome that say something about actors. The n candidates are in descending order of similarity.

    ``predicted`` is the success that the policy expected of the shown cases; it is nan if the policy made no prediction.
    ``agreement`` (n,) has the labels in hindsight; it is None if there are none.
    """

    key: int
    reporter: int
    reward: float
    predicted: float
    authors: NDArray[np.int64]
    cases: NDArray[np.int64]
    chosen: NDArray[np.int64]
    shown: bool
    agreement: Floats | None

    @property
    def agreeing(self) -> set[int]:
        """The authors of the candidates with the verified solution."""
        return set() if self.agreement is None else set(self.authors[self.agreement > 0].tolist())

    @property
    def praised(self) -> set[int]:
        """The authors of the candidates with the verified solution or, if there are none, the authors of the shown cases."""
        return self.agreeing or (set(self.authors[self.chosen].tolist()) if self.shown else set())

    @property
    def draw(self) -> float:
        """A pseudo-random number between 0 and 1 that depends on the key only."""
        return ((self.key * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF) / 2.0**64


class Counted:
    """Counts things; if there are more than ``most``, forgets the one that was not counted for the longest time.

    >>> counted = Counted(most=2)
    >>> counted.note("a"), counted.note("b"), counted.note("a"), counted.note("c"), counted.of("b")
    (1, 1, 2, 1, 0)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: OrderedDict[object, float] = OrderedDict()

    def note(self, what: object) -> int:
        """Count something; return how often it was counted."""
        found = self.of(what) + 1
        self._keep(what, found)
        return found

    def of(self, what: object) -> int:
        """Return how often something was counted."""
        return int(self._counts.get(what, 0))

    def raise_to(self, what: object, part: float) -> float:
        """Raise the count of something to ``part`` if it is lower; return by how much the count rose.

        >>> words = Counted(most=2)
        >>> words.raise_to("a", 0.25), words.raise_to("a", 1.0), words.raise_to("a", 0.5)
        (0.25, 0.75, 0.0)
        """
        before = self._counts.get(what, 0.0)
        self._keep(what, max(before, part))
        return max(before, part) - before

    def _keep(self, what: object, count: float) -> None:
        self._counts[what] = count
        self._counts.move_to_end(what)
        if len(self._counts) > self._most:
            self._counts.popitem(last=False)
