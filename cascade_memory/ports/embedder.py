"""From text to a point in space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into vectors. Frozen: the same text must give the same vector for as long as the folder lives."""

    @property
    def identity(self) -> str:
        """Name and version; stored beside every vector and compared at every opening."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row per text, shape ``(len(texts), dimension)``. Rows need not be normalised."""
        ...


class LoadsModel:
    """Inherited by an embedder whose model takes its time to load: the first recall waits for that beyond its deadline.

    To be inherited and not recognised by its method: somebody else's ``prepare`` may mean anything.
    """

    def prepare(self) -> None:
        """Load the model."""
        raise NotImplementedError
