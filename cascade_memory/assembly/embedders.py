"""Chooses the embedder for a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.display import quoted
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.minilm import ChromaMiniLMEmbedder, MiniLMEmbedder, default_embedder
from cascade_memory.engine.embedding import NothingToEmbedWith
from cascade_memory.errors import EncoderMismatch, InvalidInput
from cascade_memory.ports.encoders import Embedder


class StoredVectors:
    """Takes the place of a folder's embedder where nothing is embedded: reading, exporting and forgetting need no model."""

    def __init__(self, identity: str, dimension: int) -> None:
        self.identity, self.dimension = identity, dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Refuse to embed."""
        del texts
        raise NothingToEmbedWith(f"this folder was opened without its embedder {self.identity!r}, so nothing can be embedded")


def resolve_embedder(embedder: str | Embedder, stored: tuple[str, int] | None) -> Embedder:
    """Return the embedder that the user chose; "auto" is the one that wrote the folder, or all-MiniLM-L6-v2 for a new folder.

    A folder with a model, or its name on the hub (``owner/name``), is loaded with transformers.

    ``stored`` is the (identity, dimension) of the embedder that wrote the folder.

    >>> resolve_embedder("hashing", None).identity
    'hashing-1:384'
    """
    if not isinstance(embedder, str):
        if not all(hasattr(embedder, name) for name in ("identity", "dimension", "embed")):
            raise InvalidInput("embedder must have identity, dimension and embed(texts); see cascade_memory.ports.encoders")
        return embedder
    if embedder == "auto":
        return default_embedder() if stored is None else _by_identity(stored[0])
    if embedder == "stored":
        return StoredVectors(*(stored or ("none yet", 1)))
    if embedder == "minilm":
        return MiniLMEmbedder()
    if embedder == "chroma":
        return ChromaMiniLMEmbedder(fetch=True)
    if embedder == "hashing":
        return HashingEmbedder()
    from cascade_memory.encoders.text_model.files import names_a_model

    if names_a_model(embedder):
        from cascade_memory.encoders.text_model.embedder import TextModelEmbedder

        return TextModelEmbedder(embedder)
    raise InvalidInput(
        'embedder must be "auto", "minilm", "chroma", "hashing", the folder of a model, its name on the Hugging Face hub '
        f"(owner/name), or an object that embeds, not {quoted(embedder)}"
    )


def _by_identity(identity: str) -> Embedder:
    for ours in (MiniLMEmbedder, ChromaMiniLMEmbedder):
        if identity == ours.identity:
            return ours()
    if found := re.fullmatch(r"hashing-1:(\d+)", identity):
        return HashingEmbedder(int(found.group(1)))
    from cascade_memory.encoders.text_model.embedder import PREFIX

    if identity.startswith(f"{PREFIX}:"):
        raise EncoderMismatch(
            f"this memory was written with a model that was loaded from a folder or from the hub ({identity}), and where that "
            "model is now is not stored: pass its folder, or its name on the hub (owner/name), as embedder="
        )
    if identity.startswith("all-MiniLM-L6-v2@"):
        raise EncoderMismatch(
            f"this memory was written with all-MiniLM-L6-v2 on PyTorch ({identity}), which is no longer the default: embed its "
            "cases again with cascade-memory data reindex PATH --embedder minilm"
        )
    raise EncoderMismatch(f"this folder was written with the embedder {identity!r}; pass that one as embedder=")
