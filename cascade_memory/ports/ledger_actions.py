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
        """Pin, unpin, hide or show a case, as the action says; return whether that changed it. Raises ``UnknownCase``."""
        ...

    def replace(self, old: str, new: NewCase, action: NewAction) -> str:
        """Store a case in place of another one, which is hidden; return the new one's id. Raises ``UnknownCase``."""
        ...

    def page(
        self, namespace: int | None, limit: int, *, after: int | None = None, newest_first: bool = False
    ) -> list[tuple[int, AuditEntry]]:
        """Return (key, entry) of the audit log entries that follow the key ``after``, oldest or newest first.

        The entries are those of the namespace and those about the ledger as a whole; with None as the namespace, all.
        """
        ...

    def taken(self, namespace: int, entry_id: str) -> Taken:
        """Return the action of an audit log entry, so that it can be taken back.

        Raises ``UndoRefused`` if it may not be taken back, or if there is no such entry.
        """
        ...

    def undo(self, namespace: int, action: NewAction) -> None:
        """Take back an action that replaced no outcome (``settle`` takes back all others). Raises ``UndoRefused``."""
        ...

    def doubts(self, namespace: int) -> Sequence[Doubt]:
        """Return, for each episode that waits for a verdict, what its latest recall predicted; oldest episode first."""
        ...
