"""From (query, candidate) pairs to feature vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.policy import Floats

if TYPE_CHECKING:
    from typing_extensions import Self


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A task, and what a case is known by: its own task and the beginning of its solution."""

    query: str
    text: str
    head: str


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


class TrainableEncoder(PairEncoder, Protocol):
    """A pair encoder that learns. It is never changed: training returns another one, and recalls go on with this one."""

    fitted_outcomes: int

    @property
    def head(self) -> Floats:
        """The weights that a linear head on top of the features starts from."""
        ...

    def encode_pairs(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Return one row of features per pair."""
        ...

    def trained(
        self, pairs: Sequence[Pair], labels: Floats, weights: Floats, theta: Floats, *, joint: bool, loss: str
    ) -> tuple[Self, Floats]:
        """Return an encoder one step further down the mean loss under the head ``theta``, and the head.

        The head is the same one unless it is trained as well (``joint``). ``loss`` is "logistic" or "squared".
        """
        ...

    def untrained(self) -> Self:
        """Return the encoder as it was before any training."""
        ...

    def save(self, file: Path) -> None:
        """Write the weights, complete or not at all."""
        ...

    def loaded(self, file: Path) -> Self:
        """Return this encoder with weights that ``save`` wrote; those of another architecture are refused."""
        ...
