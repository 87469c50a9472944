"""Makes any LlamaIndex ``BaseEmbedding`` the memory's embedder."""

from __future__ import annotations

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseComponent

from cascade_memory.encoders.borrowed import BorrowedEmbedder


class LlamaIndexEmbedder(BorrowedEmbedder):
    """Wraps a ``BaseEmbedding``.

    Its class and model are stored with the vectors. A memory with these vectors refuses an embedder with another model.

    >>> from llama_index.core.embeddings import MockEmbedding
    >>> LlamaIndexEmbedder(MockEmbedding(embed_dim=8)).embed(["heat the cup"]).shape
    (1, 8)
    """

    def __init__(self, embedding: BaseEmbedding, *, identity: str | None = None) -> None:
        super().__init__(embedding.get_text_embedding_batch, identity or _identity(embedding))


def _identity(embedding: BaseEmbedding) -> str:
    kind, model = embedding.class_name(), embedding.model_name
    if kind == BaseComponent.class_name():  # a class that does not define a name of its own
        kind = f"{type(embedding).__module__}.{type(embedding).__qualname__}"
    return f"llama-index:{kind}" if model in ("", "unknown") else f"llama-index:{kind}:{model}"
