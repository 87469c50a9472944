"""A part of the ledger: small facts about the folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


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

    def note_event(self, kind: str, namespace: int | None, payload: Mapping[str, Any]) -> None:
        """Record an event, such as a training, for people and for replays."""
        ...
