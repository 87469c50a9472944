"""Dense retrieval: finds the passages whose vectors are closest to that of a query."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cascade_memory.assembly import OwnerLock
from cascade_memory.evaluation.search.passages import Passage
from cascade_memory.memory import progress_bar
from cascade_memory.ports import Embedder

_BATCH = 512
_PAUSE = 0.2  # seconds


@runtime_checkable
class EmbedsPassages(Protocol):
    """An embedder that tells passages from queries, as the models named E5 do."""

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages."""
        ...


class Dense:
    """An index of passages by their vectors; a search compares each of them with the vector of the query.

    With the folder ``kept_in``, the vectors are computed once and kept there.

    >>> from cascade_memory.encoders.hashing import HashingEmbedder
    >>> index = Dense([Passage("Jaws", "A film about a shark."), Passage("Ada", "A book about a poet.")], HashingEmbedder())
    >>> int(index.scores("a shark in a film").argmax())
    0
    """

    def __init__(self, passages: Sequence[Passage], embedder: Embedder, *, kept_in: Path | None = None) -> None:
        self._embedder = embedder
        texts = [f"{passage.title}\n{passage.text}" for passage in passages]
        self._vectors = _vectors(texts, embedder, kept_in)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the cosine similarity of every passage to the query."""
        return self._vectors @ _units(self._embedder.embed([query]))[0]


def _vectors(texts: Sequence[str], embedder: Embedder, folder: Path | None) -> NDArray[np.float32]:
    if folder is None:
        return _embedded(texts, embedder)
    path = folder / f"passages-{_fingerprint(texts, embedder)}.npy"
    folder.mkdir(parents=True, exist_ok=True)
    lock = OwnerLock(folder / "passages.lock")
    while not lock.try_acquire():  # another process computes them, which may take minutes
        time.sleep(_PAUSE)
    try:
        found = _read(path, (len(texts), embedder.dimension))
        if found is None:
            found = _embedded(texts, embedder)
            _write(path, found)
        return found
    finally:
        lock.release()


def _embedded(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    embed = embedder.embed_passages if isinstance(embedder, EmbedsPassages) else embedder.embed
    vectors = np.empty((len(texts), embedder.dimension), np.float32)
    starts = range(0, len(texts), _BATCH)
    for start in progress_bar(starts, "passages embedded", show=None if len(texts) > _BATCH else False):
        vectors[start : start + _BATCH] = _units(embed(texts[start : start + _BATCH]))
    return vectors


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)


def _fingerprint(texts: Sequence[str], embedder: Embedder) -> str:
    """Return a hash of what the vectors depend on: each text, and the embedder."""
    kind = "passages " if isinstance(embedder, EmbedsPassages) else ""
    state = hashlib.blake2b(f"{kind}{embedder.identity}".encode(), digest_size=8)
    for text in texts:
        raw = text.encode("utf-8", "replace")
        state.update(len(raw).to_bytes(8, "big") + raw)
    return state.hexdigest()


def _read(path: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """Read kept vectors; return None if there are none or the file is damaged, so that they are computed again."""
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    whole = isinstance(found, np.ndarray) and found.shape == shape and found.dtype == np.float32
    return found if whole and bool(np.isfinite(found).all()) else None


def _write(path: Path, vectors: NDArray[np.float32]) -> None:
    """Write a file that is there completely or not at all, since other processes may read it."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, vectors, allow_pickle=False)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
