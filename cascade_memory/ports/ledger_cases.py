"""A part of the ledger: the cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.case import Case
from cascade_memory.domain.records import CaseRecords, NewCase
from cascade_memory.domain.trajectory import Solution


class Cases(Protocol):
    """Adds and evicts cases, and reads them with all their fields, which a recall does only for the cases that it shows."""

    def add(self, new: Sequence[NewCase], action: NewAction | None = None) -> list[str]:
        """Store cases, all or none, durably; return their ids, in order.

        A pair of query and solution that exists already is not stored again: its number of copies grows, and it keeps its id.
        """
        ...

    def evict(self, keys: Sequence[int], *, aside: int = 0, ttl: float | None = None) -> None:
        """Remove cases to make room; their episodes and what was learned from them stay.

        Of the cases of a namespace that had to make room, the last ``aside`` are set aside, so that they can be brought back
        for a period of grace: seven days of running time (see ``Facts.running``), or ``ttl`` if that is shorter. After it,
        ``Expiry`` deletes them.
        """
        ...

    def count(self, namespace: int | None, until: int = 2**62, *, hidden: bool = True) -> int:
        """Count the cases in a namespace, or in all, up to the key ``until``; without ``hidden``, those that may be shown."""
        ...

    def records(self, namespace: int) -> CaseRecords:
        """Return, for all cases in a namespace that may be shown, in order of age, their novelty and how they were used."""
        ...

    def behind(self, key: int, seq: int) -> int:
        """Return how many changes are missing in a copy that has the cases up to a key and the log up to a line."""
        ...

    def by_key(self, keys: Sequence[int]) -> dict[int, Case]:
        """Return complete cases by key; deleted and unreadable ones are missing."""
        ...

    def by_id(self, ids: Sequence[str], namespace: int) -> list[Case]:
        """Return complete cases of a namespace by id; deleted and unreadable ones are missing."""
        ...

    def after(self, key: int, limit: int) -> list[tuple[Case, NDArray[np.float32]]]:
        """Return up to ``limit`` cases of all namespaces with keys after this one, and their vectors, in order of age.

        There may be fewer if their solutions are long, but the result is empty only if no cases follow.
        """
        ...

    def page(self, namespace: int, limit: int, *, after: int | None = None, newest_first: bool = False) -> list[int]:
        """Return the next ``limit`` keys of a namespace that follow the key ``after``, oldest or newest first."""
        ...

    def keys_of(self, ids: Sequence[str]) -> list[int]:
        """Return the keys of cases by id, in any order; deleted cases are missing."""
        ...

    def solutions(self, groups: Sequence[int]) -> dict[int, Solution]:
        """Return one stored solution for each group that still has a case; cases whose solutions agree have the same group."""
        ...

    def told_apart(self, groups: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return, by group (see ``solutions``), (digest of the matcher's key, kind) of one solution; texts are not read."""
        ...
