"""Real texts, their solutions and their MiniLM vectors: as many as a benchmark needs.

The texts are the tasks of six streams in the folder that CASCADE_DATA names, and windows of 24 words from the encyclopedia
paragraphs there. The stride between windows is as wide as the number of texts allows. All texts are distinct, and shuffled with
a seed. Vectors are computed once and stored in ``results/``.

    python examples/benchmarks/real_texts.py 104000        # compute the vectors of 104,000 texts now
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from cascade_memory.ports.encoders import Embedder

TASKS = ("banking77", "ddxplus", "sentifin", "rca_huawei_module", "bgl_2k", "spider_dev")
CORPUS = "2wiki_corpus"
POOL = 104_000  # texts in the pool from which a selection is drawn, if it is not larger
WINDOW = 24  # words: the length of a typical task
CHUNK = 512  # texts embedded between two updates of the progress bar
SLAB = 10_000  # texts embedded before the vectors are saved again


@dataclass(frozen=True, slots=True)
class RealTexts:
    """Distinct texts, their solutions and unit vectors, shuffled. A larger selection begins with the smaller one."""

    texts: list[str]
    solutions: list[str]
    vectors: NDArray[np.float32]  # (n, 384); on disk until it is read

    def cases(self, start: int, stop: int) -> list[tuple[str, str, dict[str, str]]]:
        """Return some texts as (query, solution, metadata). Ten users have a tenth of them each."""
        return [(self.texts[i], self.solutions[i], {"user": f"u{i % 10}"}) for i in range(start, stop)]


class KnownVectors:
    """Replaces an embedder, so that its cost is not measured: it looks up the vectors that MiniLM computed."""

    def __init__(self, texts: Sequence[str], vectors: NDArray[np.float32], identity: str = "minilm-precomputed") -> None:
        self._rows = {text: row for row, text in enumerate(texts)}
        self._vectors = vectors
        self.identity, self.dimension = identity, int(vectors.shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Look the vectors up."""
        return np.asarray(self._vectors[[self._rows[text] for text in texts]], np.float32)


def load(n: int, *, seed: int = 0, cache: Path = Path("results")) -> RealTexts:
    """Return n texts with their vectors. Vectors that the cache has are not computed again."""
    folder = Path(os.environ.get("CASCADE_DATA", ""))
    if not os.environ.get("CASCADE_DATA") or not folder.is_dir():
        print("skipped: no data (CASCADE_DATA names no folder of task streams)")
        raise SystemExit(0)
    # The pool has the same size for every n up to POOL, so that vectors computed for few texts are used again for more.
    pairs = list(_with_windows(_tasks(folder), folder, max(n, POOL)).items())
    order = np.random.default_rng([seed, len(pairs)]).permutation(len(pairs))
    texts, solutions = [pairs[i][0] for i in order], [pairs[i][1] for i in order]
    pool = hashlib.blake2b("\0".join(texts).encode(), digest_size=6).hexdigest()
    vectors = _vectors(texts[:n], cache / f"minilm-{pool}.npy")
    return RealTexts(texts[:n], solutions[:n], vectors)


def texts_only(n: int) -> list[str]:
    """Return n distinct texts without vectors; beyond those of the data, texts are repeated with a number in them."""
    folder = Path(os.environ.get("CASCADE_DATA", ""))
    if not os.environ.get("CASCADE_DATA") or not folder.is_dir():
        print("skipped: no data (CASCADE_DATA names no folder of task streams)")
        raise SystemExit(0)
    texts = list(_with_windows(_tasks(folder), folder, min(n, POOL)))
    order = np.random.default_rng([0, len(texts)]).permutation(len(texts))
    return [texts[order[i % len(texts)]] + (f" ({i // len(texts)})" if i >= len(texts) else "") for i in range(n)]


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    with (folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _tasks(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in TASKS:
        for row in _rows(folder, name):
            label = row["label"]
            found.setdefault(row["task"], label if isinstance(label, str) else json.dumps(label, sort_keys=True))
    return found


def _with_windows(tasks: dict[str, str], folder: Path, n: int) -> dict[str, str]:
    """Add windows of the corpus, with the widest stride that gives n texts. A window's solution is the title of its page."""
    pages = [(row["title"], row["text"].split()) for row in _rows(folder, CORPUS)]
    for stride in range(WINDOW, 0, -1):
        if len(tasks) + sum(1 + max(0, len(words) - WINDOW) // stride for _, words in pages) < n:
            continue
        found = dict(tasks)
        for title, words in pages:
            for start in range(0, max(0, len(words) - WINDOW) + 1, stride):
                found.setdefault(" ".join(words[start : start + WINDOW]), title)
        if len(found) >= n:
            return found
    raise SystemExit(f"the data does not hold {n:,} distinct texts")


def _vectors(texts: Sequence[str], path: Path) -> NDArray[np.float32]:
    """Return the vectors of the first texts of a pool. Vectors that the file does not have yet are computed and added to it."""
    known = np.load(path, mmap_mode="r") if path.exists() else np.zeros((0, 384), np.float32)
    if len(known) < len(texts):
        from cascade_memory.encoders.minilm import MiniLMEmbedder

        embedder = MiniLMEmbedder()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.npy")
        with tqdm(total=len(texts), initial=len(known), desc="MiniLM", unit="text") as bar:
            while len(known) < len(texts):  # saved after each slab, so that an interruption costs at most one
                known = np.concatenate([known, _embedded(embedder, texts[len(known) : len(known) + SLAB], bar)])
                np.save(partial, known)
                partial.replace(path)
    return np.load(path, mmap_mode="r")[: len(texts)]


def _embedded(embedder: Embedder, texts: Sequence[str], bar: tqdm[Any]) -> NDArray[np.float32]:
    vectors = np.zeros((len(texts), embedder.dimension), np.float32)
    by_length = np.argsort([len(text) for text in texts])  # batches of similar length need little padding
    for start in range(0, len(texts), CHUNK):
        rows = by_length[start : start + CHUNK]
        vectors[rows] = embedder.embed([texts[row] for row in rows])
        bar.update(len(rows))
    return vectors


if __name__ == "__main__":
    selection = load(int(sys.argv[1]) if len(sys.argv) > 1 else POOL)
    print(f"{len(selection.texts):,} texts, {selection.vectors.nbytes / 2**20:.0f} MiB of vectors")
