"""A part of the ledger: checking it for damage, repairing it, and changing its embedder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Maintenance(Protocol):
    """The checks and repairs of the doctor. A ledger in which a kind of fault is impossible reports none of that kind."""

    def integrity(self) -> str:
        """Return ``ok``, or the storage's own description of the damage."""
        ...

    def rebuild_indexes(self) -> None:
        """Make every index of the storage anew from its table, if that can be done."""
        ...

    def orphans(self) -> dict[str, int]:
        """Return the number of orphaned rows, which refer to nothing that exists, by table; tables without any are left out."""
        ...

    def remove_orphans(self) -> None:
        """Delete orphaned rows, durably."""
        ...

    def faults(self, limit: int) -> list[str]:
        """Describe up to ``limit`` rows that cannot be used, unreadable facts included."""
        ...

    def mend(self, embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> str:
        """Repair or remove rows that cannot be used, durably; describe what was done. An intact case is never removed."""
        ...

    def audit_log(self) -> tuple[bool, str]:
        """Return whether each audit log entry fits the one before it, and a sentence that says so or names the first misfit."""
        ...

    def seal_audit_log(self) -> str:
        """Compute the digests of the audit log again from the first misfit on, durably, and note that; return a sentence."""
        ...

    def ahead_of(self, now: float) -> int:
        """Return how many stored times are in the future."""
        ...

    def bring_back(self, now: float) -> None:
        """Set times in the future to the present, durably; otherwise rows with such dates would never grow old."""
        ...

    def open_before(self, moment: float) -> int:
        """Return how many open episodes began before ``moment``."""
        ...

    def odd_vectors(self, dimension: int) -> int:
        """Return how many vectors do not have this dimension."""
        ...

    def query_texts(self) -> list[str]:
        """Return the distinct queries that have a vector."""
        ...

    def replace_vectors(self, embed: Callable[[Sequence[str]], Mapping[str, NDArray[np.float32]]], embedder: str) -> int:
        """Give every query its new vector and store the embedder's name, durably: all or nothing. Return the number of cases.

        Queries that other processes add meanwhile are embedded here while those processes wait; after that, they are refused
        with ``StoreReplaced`` or ``EncoderMismatch``. Facts with names beginning with ``mirror`` are deleted, so that each
        mirror is filled again.
        """
        ...
