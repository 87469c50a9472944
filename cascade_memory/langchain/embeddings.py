"""Makes any LangChain ``Embeddings`` object the memory's embedder."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from cascade_memory.encoders.borrowed import BorrowedEmbedder


class LangChainEmbedder(BorrowedEmbedder):
    """Wraps an ``Embeddings`` object.

    Its class and model are stored with the vectors. A memory with these vectors refuses an embedder with another model.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> LangChainEmbedder(DeterministicFakeEmbedding(size=8)).embed(["heat the cup"]).shape
    (1, 8)
    """

    def __init__(self, embeddings: Embeddings, *, identity: str | None = None) -> None:
        super().__init__(embeddings.embed_documents, identity or _identity(embeddings))


def _identity(embeddings: Embeddings) -> str:
    names = ("model", "model_name", "model_id", "deployment", "repo_id")
    model = next((value for name in names if isinstance(value := getattr(embeddings, name, None), str) and value), None)
    kind = type(embeddings).__name__
    return f"langchain:{kind}" if model is None else f"langchain:{kind}:{model}"
