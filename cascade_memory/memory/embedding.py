"""Vectors that can be trusted, and the note which embedder they come from."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.errors import InvalidInput, StoreCorrupt
from cascade_memory.ports.embedder import Embedder
from cascade_memory.ports.ledger import Ledger

_META = "embedder"


def embed_with(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return unit vectors, or say what is wrong with what the embedder returned."""
    vectors = np.asarray(embedder.embed(texts), np.float32)
    if vectors.shape != (len(texts), embedder.dimension):
        expected = (len(texts), embedder.dimension)
        raise InvalidInput(f"embedder {embedder.identity!r} returned shape {vectors.shape}, expected {expected}")
    if not np.isfinite(vectors).all():
        raise InvalidInput(f"embedder {embedder.identity!r} returned nan or infinity; nothing was stored")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (norms == 0).any():
        raise InvalidInput(f"embedder {embedder.identity!r} returned a zero vector, which is similar to nothing")
    return vectors / norms


def note_embedder(embedder: Embedder) -> tuple[str, str]:
    """Return the key and the text under which a folder names its embedder."""
    return _META, json.dumps([embedder.identity, embedder.dimension])


def stored_embedder(ledger: Ledger) -> tuple[str, int] | None:
    """Return the (identity, dimension) that a folder names."""
    text = ledger.meta(_META)
    if text is None:
        return None
    try:
        identity, dimension = json.loads(text)
        return str(identity), int(dimension)
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreCorrupt(f"the ledger's note of its embedder is damaged ({text[:80]!r}); restore it from a backup") from error
