"""From text to numbers: embedders, pair encoders, and matchers.

Embedders turn a text into a vector. Pair encoders turn (query, candidate) pairs into feature vectors. Matchers decide whether
two solutions agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.plain_json import parsed
from cascade_memory.domain.trajectory import Solution
from cascade_memory.ports.policy import Floats

if TYPE_CHECKING:
    from typing_extensions import Self

_MOST_DIMENSIONS = 10**6


class Embedder(Protocol):
    """Turns texts into vectors. The same text must give the same vector for as long as the folder exists."""

    @property
    def identity(self) -> str:
        """Name and version; stored with the vectors and compared whenever the folder is opened."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row per text, shape ``(len(texts), dimension)``. Rows need not be normalised."""
        ...


def noted(text: object) -> tuple[str, int] | None:
    """Read the note in which a folder names the embedder of its vectors; return its identity and dimension, None if unreadable.

    >>> noted('["hashing", 8]'), noted('["hashing", 0]'), noted("?")
    (('hashing', 8), None, None)
    """
    match parsed(text):
        case [str(identity), int(dimension)] if type(dimension) is int and 0 < dimension <= _MOST_DIMENSIONS:
            return identity, dimension
        case _:
            return None


class LoadsModel:
    """Base class of embedders whose model loads slowly: the first recall waits for the model, even beyond its deadline.

    Such an embedder must inherit from this class: a method named ``prepare`` alone may mean something else.
    """

    def prepare(self) -> None:
        """Load the model."""
        raise NotImplementedError

    def begin(self) -> None:
        """Load at least what the first recall needs; what only makes later recalls faster may be loaded on a thread."""
        self.prepare()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """The task at hand: its text and its unit vector."""

    text: str
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The cases to encode, as arrays and lists with one entry per case.

    ``texts`` are the tasks of the cases, and ``heads`` the beginnings of their solutions. Cases with equal ``groups`` have
    solutions that agree. ``alike`` is the share of the recall's metadata that each case has as well; it is None if the recall
    has no metadata, or if the cases are not candidates of a recall.
    """

    keys: NDArray[np.int64]
    texts: Sequence[str]
    heads: Sequence[str]
    vectors: NDArray[np.float32]
    groups: NDArray[np.int64]
    alike: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A task, and what an encoder sees of a case: the case's own task, and the beginning of its solution."""

    query: str
    text: str
    head: str


class PairEncoder(Protocol):
    """Describes how a candidate relates to a query. Each namespace has its own encoder, so nothing is shared."""

    @property
    def identity(self) -> str:
        """Name and version; features of encoders with different identities are never mixed."""
        ...

    def encode(self, query: Query, candidates: Candidates, similarity: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return one row of features per candidate. Called by many threads at once."""
        ...

    def retain(self, cases: Candidates) -> None:
        """Add new cases to the encoder's statistics. Called by one thread at a time."""
        ...

    def emptied(self) -> PairEncoder:
        """Return an encoder like this one without any case; the remaining cases are then added to it.

        In this way deleted cases leave the statistics, while recalls go on with the present encoder.
        """
        ...


class FindsFurther(Protocol):
    """The method ``further`` of a pair encoder, if it has one: it knows cases that may help, although others are nearer."""

    def __call__(self, query: Query, k: int) -> NDArray[np.int64]:
        """Return the keys of at most k such cases, in ascending order; they take places of the least near candidates."""
        ...


class TrainableEncoder(PairEncoder, Protocol):
    """A pair encoder that learns. It is immutable: training returns a new encoder, and recalls go on with the present one."""

    fitted_outcomes: int

    @property
    def head(self) -> Floats:
        """The initial weights of a linear head on top of the features."""
        ...

    def encode_pairs(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """Return one row of features per pair."""
        ...

    def trained(
        self, pairs: Sequence[Pair], labels: Floats, weights: Floats, theta: Floats, *, joint: bool, loss: str
    ) -> tuple[Self, Floats]:
        """Make one training step that reduces the mean loss under the head ``theta``; return the new encoder, and the head.

        The head is unchanged unless it is trained as well (``joint``). ``loss`` is "logistic" or "squared".
        """
        ...

    def untrained(self) -> Self:
        """Return the encoder as it was before any training."""
        ...

    def save(self, file: Path) -> None:
        """Write the weights to a file; on failure no file is left."""
        ...

    def loaded(self, file: Path) -> Self:
        """Return this encoder with weights that ``save`` wrote; raise if they are from another architecture."""
        ...


class SolutionMatcher(Protocol):
    """Decides which recalled cases would have been right, given a verified solution. This yields the hindsight labels."""

    def key(self, solution: Solution) -> str:
        """Return a text that is equal for solutions that certainly agree."""
        ...

    def agreement(self, verified: Solution, stored: Sequence[Solution]) -> Sequence[float]:
        """Return how far each stored solution agrees with the verified one, in [0, 1]; nan if that is unknown."""
        ...
