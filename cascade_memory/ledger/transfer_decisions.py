"""What an import brings about actors takes effect at once, on its own cases and on those that are here."""

from __future__ import annotations

from cascade_memory.ledger.case_states import decided_about, set_quarantined
from cascade_memory.ledger.database import Connection


class Decisions:
    """Notes what one import is about to change, and then moves cases into quarantine or out of it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._before: dict[int, dict[str, bool]] = {}  # namespace -> what was decided before the import
        self._authors: set[tuple[int, str]] = set()  # whose cases were imported

    def expect_action(self, namespace: int) -> None:
        """Note what is decided in a namespace; called before each entry of its audit log is stored."""
        if namespace not in self._before:
            self._before[namespace] = decided_about(self._connection, namespace)

    def note_author(self, namespace: int, actor: str | None) -> None:
        """Note whose case was imported."""
        if actor is not None:
            self._authors.add((namespace, actor))

    def take_effect(self) -> None:
        """Let the cases follow the last decisions. Processes that have the memory open read in the log what has changed."""
        for namespace in sorted({*self._before, *(one for one, _ in self._authors)}):
            after = decided_about(self._connection, namespace)
            before = self._before.get(namespace, after)
            for actor in sorted({*before, *after}):
                news = before.get(actor) != after.get(actor)
                if news or (namespace, actor) in self._authors:
                    set_quarantined(self._connection, namespace, actor, quarantined=after.get(actor, False), tells=news)
