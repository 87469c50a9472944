"""Vectors that can be trusted, and the note which embedder they come from."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.case import Case
from cascade_memory.errors import InvalidInput, StoreCorrupt
from cascade_memory.ports.embedder import Embedder
from cascade_memory.ports.ledger import Ledger

_META = "embedder"
_SAMPLE = 16  # of the newest cases, and as many of all
_SAME = 0.99  # cosine of two vectors of one text: threads and batches round differently


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


def named(embedder: Embedder) -> str:
    """Return the text by which a folder names its embedder."""
    return json.dumps([embedder.identity, embedder.dimension])


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


def sample(ledger: Ledger) -> list[tuple[Case, NDArray[np.float32]]]:
    """Return some of the newest cases, and some of all, with their vectors."""
    last = max((int(ledger.newest(number, 1).max(initial=0)) for number in ledger.namespaces().values()), default=0)
    found = ledger.cases_after(last - _SAMPLE, _SAMPLE)
    for _ in range(_SAMPLE):
        found += ledger.cases_after(random.randrange(max(last, 1)), 1)
    return list({case.key: (case, vector) for case, vector in found}.values())


def strangers(embedder: Embedder, cases: Sequence[tuple[Case, NDArray[np.float32]]]) -> int:
    """Return how many of these vectors are not what the embedder makes of the text."""
    if not cases:
        return 0
    fresh = embed_with(embedder, [case.query for case, _ in cases])
    cosines = np.einsum("ij,ij->i", fresh, np.stack([vector for _, vector in cases]))
    return int((cosines < _SAME).sum())
