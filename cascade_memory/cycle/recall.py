"""Step 1, recall: finds the nearest cases of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports.case_index import CaseIndex
from cascade_memory.ports.encoders import Candidates, Query

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recalled:
    """The candidates, in descending order of cosine."""

    candidates: Candidates
    similarity: NDArray[np.float32]
    ids: tuple[str, ...]
    authors: tuple[str | None, ...] = ()  # empty if no candidate has an author


def recall(
    query: Query,
    *,
    index: CaseIndex,
    ledger: Ledger,
    size: int,
    among: NDArray[np.int64] | None = None,
    verified_after: float = 0.0,
    min_trust: int = 0,
    namespace: int = 0,
    further: NDArray[np.int64] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Recalled:
    """Return the ``size`` nearest cases, with the data that are needed to choose among them.

    ``namespace`` is the id of the namespace of the cases; it is used only with ``min_trust`` and ``metadata``. ``further`` are
    keys of cases that take the places of the least near ones. ``metadata`` are those of the recall.
    """
    keys, similarity = index.nearest(query.vector, size, among)
    if further is not None and len(further):
        allowed = further if among is None else np.intersect1d(further, among)
        living, _ = index.nearest(query.vector, len(allowed), allowed)  # without those that were evicted or forgotten since
        others = keys[~np.isin(keys, living)][: size - len(living)]
        keys, similarity = index.nearest(query.vector, size, np.sort(np.concatenate([others, living])))
    rows = ledger.candidates(keys, verified_after, min_trust)
    if (verified_after or min_trust) and len(rows) < len(keys):  # cases that may not be shown took places among the nearest
        keys, similarity = index.nearest(query.vector, 8 * size, among)
        rows = ledger.candidates(keys, verified_after, min_trust)
        if min_trust and len(rows) < size and len(keys) == 8 * size:  # a crowd of them: nobody can hide the others behind it
            trusted = ledger.trusted(namespace, min_trust)
            among = trusted if among is None else np.intersect1d(among, trusted, assume_unique=True)
            keys, similarity = index.nearest(query.vector, 8 * size, among)
            rows = ledger.candidates(keys, verified_after, min_trust)
        fresh = [i for i, key in enumerate(keys) if int(key) in rows][:size]
        keys, similarity = keys[fresh], similarity[fresh]
    # A case may just have been forgotten by another process, or have expired: the ledger decides.
    of_keys = [rows.get(key) for key in keys.tolist()]
    stored = np.array([row is not None for row in of_keys], bool)
    keys, similarity = keys[stored], similarity[stored]
    found = [row for row in of_keys if row is not None]
    authors = [row[4] for row in found]
    return Recalled(
        candidates=Candidates(
            keys=keys,
            texts=[row[0] for row in found],
            heads=[row[1] for row in found],
            vectors=index.vectors(keys),
            groups=np.array([row[2] for row in found], np.int64),
            alike=ledger.cases.alike(keys, namespace, metadata) if metadata else None,
        ),
        similarity=similarity,
        ids=tuple(row[3] for row in found),
        authors=tuple(authors) if authors.count(None) < len(authors) else (),
    )


def without(recalled: Recalled, held: NDArray[np.bool_], size: int) -> Recalled:
    """Leave out candidates that must not be shown; of the others, the ``size`` nearest stay."""
    kept = np.flatnonzero(~held)[:size]
    found = recalled.candidates
    places: list[int] = kept.tolist()
    return Recalled(
        candidates=Candidates(
            keys=found.keys[kept],
            texts=[found.texts[place] for place in places],
            heads=[found.heads[place] for place in places],
            vectors=found.vectors[kept],
            groups=found.groups[kept],
            alike=None if found.alike is None else found.alike[kept],
        ),
        similarity=recalled.similarity[kept],
        ids=tuple(recalled.ids[place] for place in places),
        authors=tuple(recalled.authors[place] for place in places) if recalled.authors else (),
    )
