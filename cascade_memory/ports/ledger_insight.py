"""A part of the ledger: what it holds, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from cascade_memory.ports.judged import Judged


class Insight(Protocol):
    """Reads only. ``None`` in place of a namespace means all of them."""

    def counts(self, namespace: int | None) -> dict[str, float]:
        """Return how many of everything there are.

        ``cases``, ``copies``, ``solutions``, ``recalls``, ``shown``, ``episodes`` and each of their statuses, ``rewards``,
        ``mean_reward``, and ``unkept_...`` for each reason why an outcome made no case.
        """
        ...

    def recalls(self, namespace: int) -> int:
        """Return the number of recalls."""
        ...

    def rewards(self, namespace: int | None) -> list[tuple[float, bool]]:
        """Return (value, whether a case was shown) of every standing outcome, oldest first."""
        ...

    def judged(self, namespace: int | None) -> Iterator[Judged]:
        """Yield the episodes that somebody but their agent judged, oldest first, with how their first choice was made."""
        ...

    def arms(self, namespace: int | None) -> dict[str, int]:
        """Return how many episodes each arm has, of those in which chance decided."""
        ...
