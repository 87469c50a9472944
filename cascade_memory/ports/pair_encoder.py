"""From (query, candidate) pairs to feature vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """The task at hand: its text and its unit vector."""

    text: str
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Some cases: ``keys`` (n,) identify them, equal ``groups`` (n,) mark agreeing solutions, ``heads`` begin the solutions."""

    keys: NDArray[np.int64]
    texts: Sequence[str]
    heads: Sequence[str]
    vectors: NDArray[np.float32]
    groups: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.texts)


class PairEncoder(Protocol):
    """Describes how a candidate relates to a query. One per namespace: nothing crosses over."""

    @property
    def identity(self) -> str:
        """Name and version; features of another identity are not mixed with these."""
        ...

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return one row of features per candidate. Called from many threads at once."""
        ...

    def retain(self, cases: Candidates) -> None:
        """Take note of new cases. Called by one thread at a time."""
        ...

    def emptied(self) -> PairEncoder:
        """Return an encoder like this one that knows no case; the remaining ones are retained again in it.

        That is how a deletion reaches what was counted, while recalls go on with this one.
        """
        ...
