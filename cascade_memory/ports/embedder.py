"""Embedders turn a text into a vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.plain_json import parsed

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
