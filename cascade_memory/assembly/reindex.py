"""Moves a folder to another embedder."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.assembly import folder, opened
from cascade_memory.assembly.embedders import resolve_embedder
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.engine.embedding import embed_with, named
from cascade_memory.errors import StoreError
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.memory.progress import progress_bar
from cascade_memory.ports.encoders import Embedder
from cascade_memory.stores.folder_files import remove

_BATCH = 64
_ROUNDS = 10  # each embeds what was written during the round before; after the last round, writers wait


def reindex(path: str | os.PathLike[str], embedder: str | Embedder, *, progress: bool | None = None) -> int:
    """Embed all stored queries again, either all of them or none; return the number of cases.

    The folder must not be open anywhere. A process that has it open nevertheless, or opens it before this is done, gets errors
    afterwards until it opens the folder again. At the next opening, Chroma is filled again, and the ranker learns again from
    the logged features.
    """
    root = folder.check_there(path)
    lock = OwnerLock(root / folder.LOCK)
    ledger: SQLiteLedger | None = None
    try:
        if opened.is_open(root) or not lock.try_acquire():
            raise StoreError(f"{root} is open; close it everywhere before it is reindexed")
        ledger = SQLiteLedger(root / folder.LEDGER)
        chosen = resolve_embedder(embedder, None)
        known: dict[str, NDArray[np.float32]] = {}

        def embed(texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
            new = [text for text in texts if text not in known]
            for start in progress_bar(range(0, len(new), _BATCH), "embedding", show=progress if len(new) > _BATCH else False):
                some = new[start : start + _BATCH]
                known.update(zip(some, embed_with(chosen, some), strict=True))
            return known

        for _ in range(_ROUNDS):
            before = len(known)
            if len(embed(ledger.maintenance.query_texts())) - before <= _BATCH:  # writers may wait for the few that remain
                break
        cases = ledger.maintenance.replace_vectors(embed, named(chosen))
        remove(root / folder.SNAPSHOTS)
        remove(root / folder.CHROMA)
        return cases
    finally:
        try:
            if ledger is not None:
                ledger.close()
        finally:
            lock.release()
