"""Searches passages on this machine: by vectors, by words (BM25), or by both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.search.bm25 import BM25
from cascade_memory.evaluation.search.dense import Dense
from cascade_memory.evaluation.search.passages import Passage
from cascade_memory.ports import Embedder

Retrieval: TypeAlias = Literal["dense", "bm25", "both"]
RETRIEVALS: tuple[Retrieval, ...] = get_args(Retrieval)
FOUND = 3  # passages per search, as in the paper
_DEPTH, _DAMPING = 100, 60  # of reciprocal rank fusion: how many of each list count, and how little the first ranks differ

Embedding: TypeAlias = Callable[[], Embedder]


class LocalSearch:
    """Finds the passages that fit a query best.

    ``embedder`` makes the embedder; it is not called for BM25. ``kept_in`` is a folder in which the vectors are kept. With
    "both", a passage gets 1 / (60 + rank) for its rank in each of the two lists, and the sums decide.

    >>> passages = [Passage("Jaws", "A film about a shark."), Passage("Ada", "A book about a poet.")]
    >>> [passage.title for passage in LocalSearch(passages, "bm25").search("the poet")]
    ['Ada']
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        retrieval: Retrieval = "dense",
        *,
        embedder: Embedding | None = None,
        kept_in: Path | None = None,
    ) -> None:
        if retrieval not in RETRIEVALS:
            raise InvalidInput(f"retrieval must be one of {', '.join(RETRIEVALS)}, not {retrieval!r}")
        if retrieval != "bm25" and embedder is None:
            raise InvalidInput(f"{retrieval!r} needs an embedder; choose bm25, or pass embedder=")
        self._passages = passages
        self._words = None if retrieval == "dense" else BM25(passages)
        made = embedder() if embedder is not None and retrieval != "bm25" else None
        self._dense = None if made is None else Dense(passages, made, kept_in=kept_in)
        self.about = retrieval if made is None else f"{retrieval}, {made.identity}"  # for rows

    def search(self, query: str, k: int = FOUND) -> list[Passage]:
        """Return at most k passages, the best first."""
        depth = k if self._words is None or self._dense is None else _DEPTH
        lists: list[list[int]] = []
        if self._dense is not None:
            lists.append(_best(self._dense.scores(query), depth))
        if self._words is not None:
            scores = self._words.scores(query)
            lists.append([place for place in _best(scores, depth) if scores[place] > 0])
        return [self._passages[place] for place in (lists[0] if len(lists) == 1 else _fused(lists))[:k]]


def _best(scores: NDArray[np.float32], n: int) -> list[int]:
    """Return the places of the highest scores; of equal ones, the first."""
    n = min(n, len(scores))
    some = np.flatnonzero(scores >= np.partition(scores, len(scores) - n)[len(scores) - n])
    return [int(place) for place in some[np.argsort(-scores[some], kind="stable")][:n]]


def _fused(lists: Sequence[Sequence[int]]) -> list[int]:
    total: dict[int, float] = {}
    for found in lists:
        for rank, place in enumerate(found, start=1):
            total[place] = total.get(place, 0.0) + 1 / (_DAMPING + rank)
    return sorted(total, key=lambda place: -total[place])
