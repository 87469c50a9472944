"""A part of the ledger: what people do to it, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cascade_memory.domain.actions import AuditEntry, NewAction, Taken
from cascade_memory.domain.records import Doubt, NewCase


class Actions(Protocol):
    """Does what people decide, and writes each action into the audit log in the same transaction, durably.

    Methods of other parts also write an action into the audit log if they are given one: ``cases.add``, ``forgetting``,
    ``expiry.revive``, ``archive.load`` and ``settle``. An action that changes nothing leaves no entry. No entry holds the text
    of a case; the note on an action is deleted with what the action is about.
    """

    def flag(self, namespace: int, case_id: str, action: NewAction) -> bool:
        """Pin, unpin, hide or show again a case; return whether that changed anything. Raises ``UnknownCase``."""
        ...

    def replace(self, old: str, new: NewCase, action: NewAction) -> str:
        """Store a case in place of another one, which is hidden; return the new one's id. Raises ``UnknownCase``."""
        ...

    def page(
        self, namespace: int | None, limit: int, *, after: int | None = None, newest_first: bool = False
    ) -> list[tuple[int, AuditEntry]]:
        """Return (key, entry) of the next entries by age: of this namespace and of the ledger as a whole; with None, of all."""
        ...

    def taken(self, namespace: int, entry_id: str) -> Taken:
        """Return an action that may be taken back. Raises ``UndoRefused`` if it may not, or if there is no such action."""
        ...

    def undo(self, namespace: int, action: NewAction) -> None:
        """Take back an action that replaced no outcome (``settle`` takes back all others). Raises ``UndoRefused``."""
        ...

    def doubts(self, namespace: int) -> Sequence[Doubt]:
        """Return what the latest recall of each episode that waits for a verdict predicted, oldest episode first."""
        ...
