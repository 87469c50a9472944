"""A part of the ledger: what people look at, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.episode import Episode

if TYPE_CHECKING:
    from cascade_memory.domain.viewed import PastOutcome


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredRecall:
    """One recall as it is stored; the arrays are those of ``RecallRecord``."""

    at: float
    query: str
    k: int
    policy: str
    version: int
    shown: bool
    baseline: float
    forgot: bool
    candidates: NDArray[np.int64]
    chosen: NDArray[np.int64]
    numbers: NDArray[np.float32]
    features: NDArray[np.float32]


class Viewing(Protocol):
    """Read-only queries whose cost does not grow with the number of pages."""

    def cases(
        self,
        namespace: int,
        limit: int,
        *,
        sort: str = "newest",
        after: tuple[float, int] | None = None,
        words: Sequence[str] = (),
        source: str | None = None,
        where: object | None = None,
        state: str | None = None,
    ) -> list[tuple[float, int]]:
        """Return (sort value, key) of the next cases after the pair ``after``; a case must contain each of the words.

        Words are looked for in tasks and in the beginnings of solutions, without regard to the case of ASCII letters. With a
        ``state``, "pinned" or "hidden", only such cases are returned.
        """
        ...

    def use(self, namespace: int) -> NDArray[np.float64]:
        """Return a row (key, novelty, shown, succeeded) for each case, hidden ones as well.

        Novelty is 0 if all neighbours of a case had its solution when it was made, and 1 if none had, or if this was not
        checked. ``shown`` and ``succeeded`` say how often the case was shown, and how often the task then succeeded.
        """
        ...

    def named(self, keys: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return (id, beginning of the task) of cases by key, hidden ones as well; deleted cases are missing."""
        ...

    def vector(self, key: int) -> NDArray[np.float32] | None:
        """Return the vector of a case; None if it is gone."""
        ...

    def recalls(self, episode_id: str) -> list[StoredRecall]:
        """Return the recalls of an episode, oldest first."""
        ...

    def outcomes(self, episode_id: str) -> list[PastOutcome]:
        """Return all outcomes of an episode, oldest first, also those that were replaced."""
        ...

    def verifications(self, key: int) -> list[PastOutcome]:
        """Return the outcomes that ended in this case, oldest first, also those that were replaced."""
        ...

    def shown_in(self, namespace: int, key: int, limit: int, *, before: int | None = None) -> tuple[list[Episode], int | None]:
        """Search ``limit`` recalls, newest first, for ones showing a case; return their episodes and the next ``before``."""
        ...
