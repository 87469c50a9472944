"""Moving a folder to another embedder."""

from __future__ import annotations

import os
import shutil

from cascade_memory.assembly import folder
from cascade_memory.assembly.embedders import resolve_embedder
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.errors import StoreError
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.memory.embedding import embed_with, note_embedder
from cascade_memory.memory.progress import progress_bar
from cascade_memory.ports.embedder import Embedder

_BATCH = 64


def reindex(path: str | os.PathLike[str], embedder: str | Embedder, *, progress: bool | None = None) -> int:
    """Embed every stored query anew, all or nothing; return the number of cases.

    The folder must not be open anywhere. Chroma is fed anew at the next opening; what was learned is learned anew from the
    logged features.
    """
    root = folder.check_there(path)
    lock = OwnerLock(root / folder.LOCK)
    if folder.is_open(root) or not lock.try_acquire():
        raise StoreError(f"{root} is open; close it everywhere before it is reindexed")
    ledger = SQLiteLedger(root / folder.LEDGER)
    try:
        chosen = resolve_embedder(embedder, None)
        texts = ledger.query_texts()
        vectors = {
            text: vector
            for start in progress_bar(range(0, len(texts), _BATCH), "embedding", show=progress)
            for text, vector in zip(
                texts[start : start + _BATCH], embed_with(chosen, texts[start : start + _BATCH]), strict=True
            )
        }
        cases = ledger.replace_vectors(vectors, note_embedder(chosen))
        shutil.rmtree(root / folder.SNAPSHOTS, ignore_errors=True)
        shutil.rmtree(root / folder.CHROMA, ignore_errors=True)
        return cases
    finally:
        ledger.close()
        lock.release()
