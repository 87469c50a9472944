"""Any LangChain ``Embeddings`` as the memory's embedder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray


class LangChainEmbedder:
    """Wraps an ``Embeddings`` object. Its name and model are stored with the vectors; another model will be refused.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> LangChainEmbedder(DeterministicFakeEmbedding(size=8)).embed(["heat the cup"]).shape
    (1, 8)
    """

    def __init__(self, embeddings: Embeddings, *, identity: str | None = None) -> None:
        self._embeddings = embeddings
        self._dimension: int | None = None
        self.identity = identity or _identity(embeddings)

    @property
    def dimension(self) -> int:
        """Length of the vectors; asks the model once if nothing was embedded yet."""
        if self._dimension is None:
            self.embed(["dimension"])
        assert self._dimension is not None
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text."""
        # Cases and tasks are the same kind of text: never embed_query, which some models prefix differently.
        vectors = np.asarray(self._embeddings.embed_documents(list(texts)), np.float32).reshape(len(texts), -1)
        self._dimension = vectors.shape[1]
        return vectors


def _identity(embeddings: Embeddings) -> str:
    names = ("model", "model_name", "model_id", "deployment", "repo_id")
    model = next((value for name in names if isinstance(value := getattr(embeddings, name, None), str) and value), None)
    kind = type(embeddings).__name__
    return f"langchain:{kind}" if model is None else f"langchain:{kind}:{model}"
