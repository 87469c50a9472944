"""A part of the ledger: checking it for damage, repairing it, and changing its embedder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Maintenance(Protocol):
    """The checks and repairs of ``data doctor``. A ledger in which a kind of fault is impossible reports none of that kind."""

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
        """Return a description of each row that cannot be used, up to ``limit`` of them; unreadable facts are included."""
        ...

    def mend(self, embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> str:
        """Repair or remove rows that cannot be used, durably; return a text that says what was done. An intact case stays."""
        ...

    def audit_log(self) -> tuple[bool, str]:
        """Return whether the digest of each audit log entry is right, and a sentence that says so or names the first wrong one.

        The digest of an entry is made from it and from the entry before it, and so reveals changes.
        """
        ...

    def seal_audit_log(self) -> str:
        """Compute the audit log's digests again from the first wrong one on, and record this, durably; return a sentence."""
        ...

    def ahead_of(self, now: float) -> int:
        """Return how many stored times are in the future."""
        ...

    def bring_back(self, now: float) -> None:
        """Set stored times that are after ``now`` to ``now``, durably; otherwise rows with such times would never grow old."""
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

        Queries that other processes add meanwhile are embedded here while those processes wait; after that, the writes of those
        processes are refused with ``StoreReplaced`` or ``EncoderMismatch``. Facts with names beginning with ``mirror`` are
        deleted, so that each mirror is filled again.
        """
        ...
