"""A part of the ledger: episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.trajectory import Solution


class Episodes(Protocol):
    """Reads episodes, notes how their runs ended, and closes those that nobody will judge."""

    def one(self, episode_id: str) -> Episode | None:
        """Return one episode; None where there is none."""
        ...

    def listed(
        self, namespace: int | None, *, status: str | None = None, before: float | None = None, source: str | None = None
    ) -> list[Episode]:
        """Return episodes, oldest first: by namespace, status, time of opening, and who judged them."""
        ...

    def latest(self, namespace: int, thread: str) -> Episode | None:
        """Return the newest episode of a thread; None where there is none."""
        ...

    def finish(self, episode_id: str, namespace: int, status: str, solution: Solution | None) -> bool:
        """Note how the run of an open episode ended; return False, and change nothing, where it is not open."""
        ...

    def close(self, ids: Sequence[str], status: str, *, reported: bool = False) -> list[str]:
        """Close open episodes without a label, durably; return those that were open.

        With ``reported`` also those that have nobody's word but their agent's, which is taken back.
        """
        ...

    def check_room(self, namespace: int, size: int) -> None:
        """Raise ``QuotaExceeded`` where one more report of an agent, of so many bytes, would be too much to wait for a word."""
        ...
