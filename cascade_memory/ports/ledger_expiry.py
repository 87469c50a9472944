"""A part of the ledger: the expiry of cases that were not verified for long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.case import ExpiredCase
from cascade_memory.domain.records import Expiring


class Expiry(Protocol):
    """Sets cases aside by their age, brings them back, and deletes them after a period of grace.

    Age is measured in time during which the folder was certainly in use, so that no wrong clock can affect it.
    """

    def expire(self, namespace: int, ttl: float | None) -> Expiring:
        """Set aside some of the cases that were not verified within ``ttl``, and delete some whose period of grace is over.

        A call handles a limited number, so that others can write between the calls. Without ``ttl``, it only deletes.
        """
        ...

    def keeps_any(self, namespace: int) -> bool:
        """Return whether any case of a namespace is set aside."""
        ...

    def expired(self, namespace: int, why: str = "expired") -> list[ExpiredCase]:
        """Return the cases that were set aside and can still be brought back, oldest first.

        ``why`` is "expired" for those that were not verified for long, and "evicted" for those that had to make room.
        """
        ...

    def keys_of(self, namespace: int, ids: Sequence[str]) -> dict[str, int]:
        """Return the keys of cases that were set aside, by id: they can be forgotten like any other case."""
        ...

    def revive(self, namespace: int, ids: Sequence[str] | None, action: NewAction | None = None) -> list[str]:
        """Bring back these cases, or all that expired (``ids=None``), durably; return their ids.

        They get new keys, and count as verified now.
        """
        ...
