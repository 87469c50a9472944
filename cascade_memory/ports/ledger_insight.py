"""A part of the ledger: statistics about its content and the outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from cascade_memory.ports.judged import Judged


class Insight(Protocol):
    """Read-only statistics. ``None`` as the namespace means all namespaces."""

    def counts(self, namespace: int | None) -> dict[str, float]:
        """Return counts by name.

        The names are ``cases``, ``copies``, ``solutions``, ``recalls``, ``shown``, ``episodes`` and each of their statuses,
        ``reported`` (the settled ones that only their agent has judged), ``rewards``, ``mean_reward``, and ``unkept_...`` for
        each reason why an outcome stored no case.
        """
        ...

    def recalls(self, namespace: int) -> int:
        """Return the number of recalls."""
        ...

    def rewards(self, namespace: int | None) -> list[tuple[float, bool]]:
        """Return (value, whether a case was shown) for every current outcome, oldest first."""
        ...

    def judged(self, namespace: int | None) -> Iterator[Judged]:
        """Yield the episodes judged by anybody but their agent, oldest first, with how their first choice was made."""
        ...

    def arms(self, namespace: int | None) -> dict[str, int]:
        """Return the number of episodes in each arm, leaving out those whose arm was not drawn at random."""
        ...
