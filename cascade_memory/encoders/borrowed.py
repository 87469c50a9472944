"""A framework's embedding model as the memory's embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class BorrowedEmbedder:
    """Wraps a function that embeds documents. Its identity is stored with the vectors, and another model is refused later.

    Cases and tasks are the same kind of text. Do not wrap a function that embeds queries: some models add another prefix there.

    >>> BorrowedEmbedder(lambda texts: [[1.0, 0.0]] * len(texts), "constant").dimension
    2
    """

    def __init__(self, embed_documents: Callable[[list[str]], Any], identity: str) -> None:
        self._embed_documents = embed_documents
        self._dimension: int | None = None
        self.identity = identity

    @property
    def dimension(self) -> int:
        """The length of the vectors; if nothing was embedded yet, the model is asked once."""
        if self._dimension is None:
            self.embed(["dimension"])
        assert self._dimension is not None
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text."""
        vectors = np.asarray(self._embed_documents(list(texts)), np.float32).reshape(len(texts), -1)
        self._dimension = vectors.shape[1]
        return vectors
