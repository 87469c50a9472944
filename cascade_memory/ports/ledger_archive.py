"""A part of the ledger: everything as plain records and back, and a copy of it all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from cascade_memory.domain.trajectory import Solution


class Archive(Protocol):
    """Moves what a ledger holds. Keys do not travel: cases go by id, solutions by digest."""

    def dump(self) -> Iterator[dict[str, Any]]:
        """Yield everything as records that JSON can hold, from one consistent state, in an order in which they can be read."""
        ...

    def load(self, records: Iterable[dict[str, Any]], dimension: int, key: Callable[[Solution], str]) -> int:
        """Take records that are not there yet, durably; return how many. ``key`` is equal for solutions that agree.

        All or none: a record that cannot be is ``InvalidInput``, and nothing is taken.
        """
        ...

    def copy_to(self, target: Path) -> dict[str, int]:
        """Write one consistent state into a new file and check it; return its numbers of ``cases``, ``episodes``, ``outcomes``.

        Others go on writing meanwhile. The copy knows nothing of mirrors, and has no ``identity`` that it would share.
        """
        ...
