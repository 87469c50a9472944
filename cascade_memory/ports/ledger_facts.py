"""A part of the ledger: small facts about the folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from cascade_memory.domain.signed import Signed


class Facts(Protocol):
    """Stores texts by name (such as the embedder of the vectors), and a list of events that no code reads back."""

    def get(self, name: str) -> str | None:
        """Return a fact; None if it was never stored."""
        ...

    def names(self, prefix: str) -> list[str]:
        """Return the names of the facts that begin with this prefix."""
        ...

    def set(self, name: str, value: str) -> None:
        """Store a fact, durably; this replaces its earlier value."""
        ...

    def key(self) -> str:
        """Return this ledger's secret key for signing; the first call makes it. All processes share it, but no copy has it."""
        ...

    def running(self) -> float:
        """Return for how many seconds the ledger has certainly existed, whatever the wall clock says."""
        ...

    def redeem(self, token: Signed, what: str, *, named: str) -> bool:
        """Record, durably, that a token (such as a ticket) was redeemed for ``what``; ``named`` names the token in messages.

        Return False if the token was redeemed for the same thing before. Raise ``TicketRefused`` if it was redeemed for
        something else, or if it has expired.
        """
        ...

    def note_event(self, kind: str, namespace: int | None, payload: Mapping[str, Any]) -> None:
        """Record an event, such as a training, for people and for replays."""
        ...
