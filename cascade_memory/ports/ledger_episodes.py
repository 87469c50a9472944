"""A part of the ledger: episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cascade_memory.domain.episode import Episode
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.trajectory import Solution


class Episodes(Protocol):
    """Reads episodes, records how their runs ended, and closes those that nobody will judge."""

    def one(self, episode_id: str) -> Episode | None:
        """Return one episode; None if it does not exist."""
        ...

    def opened_at(self, episode_id: str) -> float | None:
        """Return when an episode was opened; None if it does not exist.

        The time tells the episode from an earlier one with the same id.
        """
        ...

    def listed(
        self, namespace: int | None, *, status: str | None = None, before: float | None = None, source: str | None = None
    ) -> list[Episode]:
        """Return episodes, oldest first; filtered by namespace, status, time of opening, and source of the judgement."""
        ...

    def page(
        self,
        namespace: int,
        limit: int,
        *,
        after: int | None = None,
        newest_first: bool = False,
        status: str | None = None,
        source: str | None = None,
        wanted: Wanted | None = None,
    ) -> list[tuple[int, Episode]]:
        """Return the next ``limit`` episodes of a namespace with their keys, those that follow the key ``after``.

        They come oldest or newest first, filtered by status, by the source of the judgement, and by who asked and when.
        """
        ...

    def latest(self, namespace: int, thread: str) -> Episode | None:
        """Return the newest episode of a thread; None if there is none."""
        ...

    def finish(self, episode_id: str, namespace: int, status: str, solution: Solution | None) -> bool:
        """Record how the run of an open episode ended; return False, and change nothing, if the episode is not open."""
        ...

    def close(self, ids: Sequence[str], status: str, *, reported: bool = False) -> list[str]:
        """Close open episodes without a label, durably; return those that were open.

        With ``reported``, also close those that only their agent has judged, and withdraw that judgement.
        """
        ...

    def close_opened_by(self, recall: int) -> None:
        """Censor the episode that the recall with this key has opened, if it is still open and its run has not ended."""
        ...

    def check_room(self, namespace: int, size: int) -> None:
        """Raise ``QuotaExceeded`` if too many unconfirmed agents' reports wait in a namespace to add one of ``size`` bytes."""
        ...
