"""A part of the ledger: small facts about the folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Facts(Protocol):
    """Texts by name: which embedder the vectors are of, how far a mirror was fed. And a diary, which nothing reads back."""

    def get(self, name: str) -> str | None:
        """Return a fact; None where it was never noted."""
        ...

    def names(self, prefix: str) -> list[str]:
        """Return the names of the facts that begin so."""
        ...

    def set(self, name: str, value: str) -> None:
        """Note a fact, durably, in place of what it was before."""
        ...

    def note_event(self, kind: str, namespace: int | None, payload: Mapping[str, Any]) -> None:
        """Write into the diary that something was done, such as training: for people and for replays."""
        ...
