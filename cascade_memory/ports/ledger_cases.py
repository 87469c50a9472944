"""A part of the ledger: the cases themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case
from cascade_memory.domain.records import CaseRecords, NewCase
from cascade_memory.domain.trajectory import Solution


class Cases(Protocol):
    """Puts cases in and takes them out; reads them whole, which recall does for those that it shows alone."""

    def add(self, new: Sequence[NewCase]) -> list[str]:
        """Store cases, all or none, durably; return their ids, in order.

        A pair of query and solution that is known is not stored again: it counts as one more copy, and keeps its id.
        """
        ...

    def evict(self, keys: Sequence[int]) -> None:
        """Remove cases to make room; their episodes stay, and so does what was learned from them."""
        ...

    def count(self, namespace: int | None, until: int = 2**62) -> int:
        """Return the number of cases of a namespace, or of all, up to a key."""
        ...

    def records(self, namespace: int) -> CaseRecords:
        """Return novelty and use of all cases of a namespace, in order of age."""
        ...

    def behind(self, key: int, seq: int) -> int:
        """Return how much a copy lacks that has the cases up to a key and has read the log up to a line."""
        ...

    def by_key(self, keys: Sequence[int]) -> dict[int, Case]:
        """Return whole cases by key; those that are gone, or cannot be read, are missing."""
        ...

    def by_id(self, ids: Sequence[str], namespace: int) -> list[Case]:
        """Return whole cases of a namespace by id; those that are gone, or cannot be read, are missing."""
        ...

    def after(self, key: int, limit: int) -> list[tuple[Case, NDArray[np.float32]]]:
        """Return up to ``limit`` cases of all namespaces with keys after this one, and their vectors, in order of age.

        There may be fewer where their solutions are long, but there are none only where none follow.
        """
        ...

    def keys_of(self, ids: Sequence[str]) -> list[int]:
        """Return the keys of cases by id, in any order; those that are gone are missing."""
        ...

    def solutions(self, groups: Sequence[int]) -> dict[int, Solution]:
        """Return one stored solution for each group that still has a case."""
        ...

    def told_apart(self, groups: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return (digest of its key, kind) of one stored solution for each group, without reading its text."""
        ...
