"""A part of the ledger: who wrote what, and when."""

from __future__ import annotations

from typing import Protocol

from cascade_memory.domain.provenance import ChangedCase, SourceRow, Wanted


class Provenance(Protocol):
    """Reads rows by source and time, as a ``Wanted`` names them. Nothing here changes anything."""

    def cases(
        self, namespace: int, limit: int, wanted: Wanted, *, after: int | None = None, newest_first: bool = False
    ) -> list[int]:
        """Return the next ``limit`` keys of the wanted cases that follow the key ``after``, oldest or newest first."""
        ...

    def sources(self, namespace: int) -> list[SourceRow]:
        """Return a row for each actor and channel, those with the most cases first."""
        ...

    def came(self, namespace: int, wanted: Wanted) -> list[ChangedCase]:
        """Return the wanted cases that were stored, oldest first."""
        ...

    def went(self, namespace: int, wanted: Wanted) -> list[ChangedCase]:
        """Return the wanted cases that were set aside and can still be brought back, oldest first."""
        ...
