"""A part of the ledger: letting go of what was not verified for long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cascade_memory.domain.case import ExpiredCase
from cascade_memory.domain.records import Expiring


class Expiry(Protocol):
    """Sets cases aside by their age, brings them back, and deletes them after a time of grace.

    Age is running time, for which the folder has certainly been there: no wall clock can push it.
    """

    def expire(self, namespace: int, ttl: float | None) -> Expiring:
        """Set some of the cases aside that were not verified for so long, delete those that were set aside for long.

        Some at a time: others write in between. Without ``ttl`` only the latter.
        """
        ...

    def expired(self, namespace: int) -> list[ExpiredCase]:
        """Return the cases that were set aside and can be brought back, oldest first."""
        ...

    def keys_of(self, namespace: int, ids: Sequence[str]) -> dict[str, int]:
        """Return the keys of cases that were set aside, by id: they can be forgotten like any other."""
        ...

    def revive(self, namespace: int, ids: Sequence[str] | None) -> list[str]:
        """Bring back cases that were set aside, or all of them, durably: verified now, with new keys. Return their ids."""
        ...
