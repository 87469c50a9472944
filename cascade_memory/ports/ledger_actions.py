"""A part of the ledger: what people do to it, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cascade_memory.domain.actions import AuditEntry, NewAction, Taken
from cascade_memory.domain.records import Doubt, NewCase


class Actions(Protocol):
    """Does what people decide, and writes each action into the audit log in the same transaction, durably.

    Other parts do so as well, if they are given an action: ``cases.add``, ``forgetting``, ``expiry.revive``, ``archive.load``
    and ``settle``. An action that changes nothing leaves no entry. No entry holds the text of a case; the note on an action is
    deleted with its subject.
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
        """Return the next entries of a namespace and of the ledger as a whole, each with its key, by age; None: all."""
        ...

    def taken(self, namespace: int, entry_id: str) -> Taken:
        """Return an action that may be taken back. Raises ``UndoRefused`` if it may not, or if there is no such action."""
        ...

    def undo(self, namespace: int, action: NewAction) -> None:
        """Take an action back that did not replace an outcome; ``settle`` takes back one that did. Raises ``UndoRefused``."""
        ...

    def doubts(self, namespace: int) -> Sequence[Doubt]:
        """Return what the recalls of episodes predicted that wait for a verdict, the latest recall of each, oldest first."""
        ...
