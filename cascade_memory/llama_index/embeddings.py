"""Any LlamaIndex ``BaseEmbedding`` as the memory's embedder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from numpy.typing import NDArray


class LlamaIndexEmbedder:
    """Wraps a ``BaseEmbedding``. Its name and model are stored with the vectors; another model will be refused.

    >>> from llama_index.core.embeddings import MockEmbedding
    >>> LlamaIndexEmbedder(MockEmbedding(embed_dim=8)).embed(["heat the cup"]).shape
    (1, 8)
    """

    def __init__(self, embedding: BaseEmbedding, *, identity: str | None = None) -> None:
        self._embedding = embedding
        self._dimension: int | None = None
        self.identity = identity or _identity(embedding)

    @property
    def dimension(self) -> int:
        """Length of the vectors; asks the model once if nothing was embedded yet."""
        if self._dimension is None:
            self.embed(["dimension"])
        assert self._dimension is not None
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text."""
        # Cases and tasks are the same kind of text: never get_query_embedding, which some models prefix differently.
        vectors = np.asarray(self._embedding.get_text_embedding_batch(list(texts)), np.float32).reshape(len(texts), -1)
        self._dimension = vectors.shape[1]
        return vectors


def _identity(embedding: BaseEmbedding) -> str:
    kind, model = embedding.class_name(), embedding.model_name
    return f"llama-index:{kind}" if model in ("", "unknown") else f"llama-index:{kind}:{model}"
