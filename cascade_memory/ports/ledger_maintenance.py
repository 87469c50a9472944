"""A part of the ledger: whether it is sound, putting it right, and moving it to another embedder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Maintenance(Protocol):
    """What the doctor asks and does. A ledger in which something cannot be wrong says that it is not."""

    def integrity(self) -> str:
        """Return ``ok``, or what the storage itself says is wrong."""
        ...

    def orphans(self) -> dict[str, int]:
        """Return how many rows of which table belong to nothing; tables that have none are left out."""
        ...

    def remove_orphans(self) -> None:
        """Delete rows that belong to nothing, durably."""
        ...

    def faults(self, limit: int) -> list[str]:
        """Return up to ``limit`` rows that cannot be used, in words; facts that the library could not read are among them."""
        ...

    def mend(self, embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> str:
        """Put rows right that cannot be used, or remove them, durably; say what was done. A case that is whole stays."""
        ...

    def ahead_of(self, now: float) -> int:
        """Return how many times lie in the future."""
        ...

    def bring_back(self, now: float) -> None:
        """Set times that lie in the future to the present, durably: else what is dated so would never grow old."""
        ...

    def open_before(self, moment: float) -> int:
        """Return how many open episodes began earlier."""
        ...

    def odd_vectors(self, dimension: int) -> int:
        """Return how many vectors have another length than those of the embedder."""
        ...

    def query_texts(self) -> list[str]:
        """Return the distinct queries of which there is a vector."""
        ...

    def replace_vectors(self, embed: Callable[[Sequence[str]], Mapping[str, NDArray[np.float32]]], embedder: str) -> int:
        """Give every query its new vector and note the embedder, durably: all, or none. Return the number of cases.

        What others wrote meanwhile is embedded here, while they wait. From then on they are refused with ``StoreReplaced`` or
        ``EncoderMismatch``. The facts about mirrors, whose names begin with ``mirror``, go: each has to be fed anew.
        """
        ...
