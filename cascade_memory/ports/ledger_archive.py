"""A part of the ledger: export and import as plain records, and complete copies."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Protocol

from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.trajectory import Solution


class Archive(Protocol):
    """Exports, imports and copies the content of a ledger. An export has ids of cases and digests of solutions, but no keys."""

    def dump(self) -> Generator[dict[str, Any], None, None]:
        """Yield everything as JSON-compatible records, from one consistent state, in an order in which they can be loaded.

        Close the generator if you stop early, and after an error.
        """
        ...

    def load(
        self,
        records: Iterable[dict[str, Any]],
        dimension: int,
        key: Callable[[Solution], str],
        action: NewAction | None = None,
    ) -> int:
        """Add the records that do not exist yet, durably; return how many. ``key`` is the matcher's (``SolutionMatcher.key``).

        Adds all of them or none: an invalid record raises ``InvalidInput``, and nothing is added.
        """
        ...

    def copy_to(self, target: Path) -> dict[str, int]:
        """Write one consistent state to a new file and check it; return how many ``cases``, ``episodes``, ``outcomes`` it has.

        Other writers can go on meanwhile. Facts about mirrors and the fact ``identity`` are not copied.
        """
        ...
