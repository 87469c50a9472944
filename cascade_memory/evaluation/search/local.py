"""Searches passages on this machine: by vectors, by words (BM25: rare words count most), or by both."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cascade_memory.assembly import OwnerLock
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.search.questions import Passage
from cascade_memory.memory import progress_bar
from cascade_memory.ports import Embedder

_WORD = re.compile(r"\b\w\w+\b")
_COMMON = re.compile(  # Lucene's list of words that are not indexed
    "a|an|and|are|as|at|be|but|by|for|if|in|into|is|it|no|not|of|on|or|such|that|the|their|then|there|these|they|this|to|was|"
    "will|with"
)
_SATURATION, _LENGTH = 1.5, 0.75  # the usual k1 and b
_BATCH = 512
_PAUSE = 0.2  # seconds
Retrieval: TypeAlias = Literal["dense", "bm25", "both"]
RETRIEVALS: tuple[Retrieval, ...] = get_args(Retrieval)
FOUND = 3  # passages per search, as in the paper
_DEPTH, _DAMPING = 100, 60  # of reciprocal rank fusion: how many of each list count, and how little the first ranks differ
Embedding: TypeAlias = Callable[[], Embedder]


class BM25:
    """An index of passages in RAM. Titles are indexed too, and count twice.

    >>> index = BM25([Passage("Jaws", "A film about a shark."), Passage("Ada", "A film about a poet.")])
    >>> [round(float(score), 2) for score in index.scores("the shark film")]
    [0.35, 0.07]
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        # For each word the passages and how often each has it, in turn, as plain numbers: there may be many millions.
        occurrences: defaultdict[str, array[int]] = defaultdict(partial(array, "i"))
        lengths = np.zeros(len(passages))
        for number, passage in enumerate(passages):
            words = words_of(f"{passage.title} {passage.title} {passage.text}")
            lengths[number] = len(words)
            for word, count in Counter(words).items():
                occurrences[word].extend((number, count))
        self._n = len(passages)
        typical = float(lengths.mean()) or 1.0
        damping = _SATURATION * (1 - _LENGTH + _LENGTH * lengths / typical)
        self._weights: dict[str, tuple[NDArray[np.int32], NDArray[np.float32]]] = {}
        for word, found in occurrences.items():
            places, counts = np.array(found, np.int32).reshape(-1, 2).T
            rarity = np.log(1 + (self._n - len(places) + 0.5) / (len(places) + 0.5))
            self._weights[word] = places.copy(), (rarity * counts / (damping[places] + counts)).astype(np.float32)

    def scores(self, query: str) -> NDArray[np.float32]:
        """Return the score of every passage; it is 0 if the passage has no word of the query."""
        total = np.zeros(self._n, np.float32)
        for word in words_of(query):
            if word in self._weights:
                places, weights = self._weights[word]
                total[places] += weights
        return total


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, without single letters and the most common words.

    >>> words_of("Who is the director of Jaws?")
    ['who', 'director', 'jaws']
    """
    return [word for word in _WORD.findall(text.lower()) if not _COMMON.fullmatch(word)]


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
