"""How long does an episode take? At 1k, 10k and 100k cases, compared with well-known operations in the same run.

    python examples/benchmarks/latency.py                  # 1k, 10k and 100k cases
    python examples/benchmarks/latency.py --sizes 1000     # quick

References: an exact numpy scan over the same vectors; a bare SQLite commit with synchronous=FULL; a search and an add with
``langchain_chroma`` (for up to 10k cases, or as many as --chroma says); the MiniLM embedding of a query of 40 tokens. Episodes
and Chroma take turns, so that both meet the same load: in a tight loop, and with pauses in which the memory learns. Times are
wall-clock medians in milliseconds. They vary on a shared machine, so compare the ratios. Rows go to ``results/latency.jsonl``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from cascade_memory import CascadeMemory
from cascade_memory.encoders import minilm
from cascade_memory.evaluation.synthetic import tickets

DIMENSION = 384
K = 32
_TURN = 10  # episodes, and as many searches and adds in Chroma, in turns
_PAUSE = 0.05  # seconds


def median_ms(run: Callable[[int], object], times: int) -> float:
    """Return the median duration of ``run(i)``."""
    return quantiles_ms(run, times)[0]


def quantiles_ms(run: Callable[[int], object], times: int) -> tuple[float, float]:
    """Return median and 95 % quantile of the duration of ``run(i)``."""
    spent = []
    for i in range(times):
        began = time.perf_counter()
        run(i)
        spent.append(1000 * (time.perf_counter() - began))
    return float(np.median(spent)), float(np.quantile(spent, 0.95))


class ClusteredVectors:
    """Replaces an embedder, so that its cost is not measured: unit vectors around 200 centres, stored for each text."""

    identity, dimension = "benchmark-vectors", DIMENSION

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._centres = self._rng.normal(size=(200, DIMENSION)).astype(np.float32)
        self._known: dict[str, NDArray[np.float32]] = {}

    def prepare(self, texts: list[str]) -> NDArray[np.float32]:
        """Make vectors for texts, store them and return them."""
        centre = self._rng.integers(200, size=len(texts))
        vectors = self._centres[centre] + 0.8 * self._rng.normal(size=(len(texts), DIMENSION)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        self._known.update(zip(texts, vectors, strict=True))
        return vectors

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the stored vectors of texts."""
        return np.stack([self._known[text] for text in texts])


@dataclass(frozen=True, slots=True)
class Material:
    """Texts of about 40 tokens and their solutions."""

    cases: list[tuple[str, str, dict[str, str]]]
    queries: list[str]

    @classmethod
    def of(cls, n: int, queries: int) -> Material:
        """Return n cases and some queries: made-up tickets with a number, so that none occurs twice."""
        stream = tickets(n + queries, seed=1)
        texts = [f"Ticket {i}. {task.query} It began {i % 90} days ago." for i, task in enumerate(stream)]
        cases = [(texts[i], stream[i].solution, {"user": f"u{i % 10}"}) for i in range(n)]
        return cls(cases, texts[n:])


def bare_commit(folder: Path, times: int) -> float:
    """Return the time that SQLite alone needs to commit one small row so that it survives a power cut."""
    connection = sqlite3.connect(folder / "bare.sqlite3", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (x)")

    def commit(i: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?)", (f"row {i}" * 50,))
        connection.execute("COMMIT")

    spent = median_ms(commit, times)
    connection.close()
    return spent


def numpy_scan(vectors: NDArray[np.float32], queries: NDArray[np.float32], times: int) -> float:
    """Return the time to find the 32 nearest vectors in plain numpy."""

    def scan(i: int) -> None:
        cosine = vectors @ queries[i % len(queries)]
        best = np.argpartition(-cosine, K)[:K]
        best[np.argsort(-cosine[best])]

    return median_ms(scan, times)


def processor() -> str:
    """Name the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{named}, {os.cpu_count()} cores"


def deadline_ms(memories: Sequence[CascadeMemory], queries: Sequence[str], times: int) -> float:
    """Return what a deadline costs a recall: with the first memory less without, in turns that chance decides."""
    spent: list[list[float]] = [[], []]
    for i, which in enumerate(np.random.default_rng(0).integers(2, size=times).tolist()):
        began = time.perf_counter()
        memories[which].recall(queries[i % len(queries)])
        spent[which].append(1000 * (time.perf_counter() - began))
    return float(np.median(spent[0]) - np.median(spent[1]))


def processor_ms(memory: CascadeMemory, episode: Callable[[CascadeMemory, int], None], times: int) -> float:
    """Return the processor time of an episode in a tight loop, with all that is learned from it, on whichever thread."""
    memory.sync()
    began = time.process_time()
    for i in range(times):
        episode(memory, i)
    memory.sync()
    return 1000 * (time.process_time() - began) / times


def in_turns(
    episode: Callable[[int], object], chroma: tuple[Callable[[int], object], Callable[[int], object]], times: int, pause: float
) -> tuple[float, float]:
    """Return the times of an episode, and of a search and an add in Chroma: some of the one, then some of the other.

    ``pause`` are seconds after each, in which nothing is measured.
    """
    search, add = chroma
    ours, theirs = [], []
    for start in range(0, times, _TURN):
        for i in range(start, start + _TURN):
            began = time.perf_counter()
            episode(i)
            ours.append(1000 * (time.perf_counter() - began))
            time.sleep(pause)
        for i in range(start, start + _TURN):
            began = time.perf_counter()
            search(i)
            add(i)
            theirs.append(1000 * (time.perf_counter() - began))
            time.sleep(pause)
    return float(np.median(ours)), float(np.median(theirs))


def langchain_chroma(
    folder: Path, material: Material, embedder: ClusteredVectors, times: int, episode: Callable[[int], object]
) -> dict[str, float]:
    """Return the times of a search and of an add with langchain_chroma alone, on the same cases, and of episodes beside it."""
    from langchain_chroma import Chroma
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    class Vectors(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return embedder.embed(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return embedder.embed([text])[0].tolist()

    store = Chroma("bare", Vectors(), persist_directory=str(folder / "bare-chroma"))
    for start in tqdm(range(0, len(material.cases), 1000), desc="feeding bare Chroma", leave=False):
        part = material.cases[start : start + 1000]
        store.add_texts([query for query, _, _ in part], [{"solution": s, **m} for _, s, m in part])
    queries, number = material.queries, itertools.count()

    def search(i: int) -> None:
        store.similarity_search(queries[i % len(queries)], k=K)

    def add(i: int) -> None:
        store.add_documents([Document(queries[i % len(queries)], id=f"new-{next(number)}")])

    row = {"chroma_search": median_ms(search, times), "chroma_add": median_ms(add, times)}
    for name, pause in (("tight", 0.0), ("paced", _PAUSE)):
        row[name], row[f"{name}_chroma"] = in_turns(episode, (search, add), times, pause)
    store._client.close()
    return row


def measure(n: int, times: int, *, chroma: bool) -> dict[str, float]:
    """Measure at n cases, and return the medians."""
    material = Material.of(n, times)
    embedder = ClusteredVectors()
    vectors = embedder.prepare([query for query, _, _ in material.cases])
    queries = embedder.prepare(material.queries)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        row: dict[str, float] = {"cases": n}
        with CascadeMemory(folder / "memory", embedder=embedder) as memory:
            memory.add(material.cases)
            memory.sync()
            for query in material.queries[:20]:
                memory.recall(query)
            row["numpy_scan"] = numpy_scan(vectors, queries, times)
            row["bare_commit"] = bare_commit(folder, times)
            row["recall"], row["recall_p95"] = quantiles_ms(lambda i: memory.recall(material.queries[i]), times)
            row["recall_where"] = median_ms(lambda i: memory.recall(material.queries[i], where={"user": "u3"}), times)
            episodes = [memory.recall(query).episode_id for query in material.queries]
            row["reward"], row["reward_p95"] = quantiles_ms(
                lambda i: memory.reward(episodes[i], i % 3 != 0, solution=material.cases[i][1]), times
            )

            def episode(of: CascadeMemory, i: int) -> None:
                recall = of.recall(material.queries[i % times])
                of.reward(recall.episode_id, i % 3 != 0, solution=material.cases[i % times][1])

            row["episode"] = median_ms(lambda i: episode(memory, i), times)
            row["processor"] = processor_ms(memory, episode, times)
            with CascadeMemory(folder / "memory", embedder=embedder, deadline=None) as without:
                row["deadline"] = deadline_ms((memory, without), material.queries, 2 * times)
            if chroma:
                row |= langchain_chroma(folder, material, embedder, min(times, 100), lambda i: episode(memory, i))
            embedder.prepare(["a case added just now"])
            case_id = memory.add("a case added just now", "s")
            found = memory.cases.search("a case added just now")
            row["new_case_found_at_once"] = float(found.cases[0].id == case_id)
            if minilm.is_installed():
                row["embedding"], row["embedded_episode"] = with_model(memory, material, times)
    return row


def with_model(memory: CascadeMemory, material: Material, times: int) -> tuple[float, float]:
    """Return the times to embed a query with MiniLM, and of an episode that does so; the two are measured in turn."""
    model, parts = minilm.MiniLMEmbedder(), memory._engine.parts
    model.embed(material.queries[:2])
    stand_in = parts.embedder
    alone, inside = [], []

    class Both:
        identity, dimension = stand_in.identity, stand_in.dimension

        def embed(self, texts: list[str]) -> NDArray[np.float32]:
            return model.embed(texts)

    object.__setattr__(parts, "embedder", Both())  # the stored vectors stay as they are: only the cost of embedding changes
    for i in range(times):
        query = material.queries[i]
        began = time.perf_counter()
        model.embed([query])
        alone.append(1000 * (time.perf_counter() - began))
        began = time.perf_counter()
        recall = memory.recall(query)
        memory.reward(recall.episode_id, i % 3 != 0, solution=material.cases[i][1])
        inside.append(1000 * (time.perf_counter() - began))
    object.__setattr__(parts, "embedder", stand_in)
    return float(np.median(alone)), float(np.median(inside))


def show(rows: list[dict[str, float]]) -> None:
    """Print the table, and compare it with the budget."""
    names = [
        ("numpy_scan", "exact numpy scan, 32 nearest"),
        ("bare_commit", "bare SQLite FULL commit"),
        ("recall", "recall + select"),
        ("recall_p95", "  95 % of them within"),
        ("recall_where", "recall + select, with where (10 %)"),
        ("reward", "reward, acknowledged"),
        ("reward_p95", "  95 % of them within"),
        ("episode", "episode (recall and reward)"),
        ("processor", "  its processor time, learning included"),
        ("deadline", "  what the recall's deadline costs"),
        ("embedding", "MiniLM embedding of the query alone"),
        ("embedded_episode", "episode with that embedding"),
        ("chroma_search", "langchain_chroma: search"),
        ("chroma_add", "langchain_chroma: add"),
    ]
    print(f"\nmedians in ms, {DIMENSION} dimensions, Python {platform.python_version()}, {processor()}")
    print(f"{'':38}" + "".join(f"{int(row['cases']):>12,}" for row in rows))
    for key, name in names:
        print(f"{name:38}" + "".join(f"{row[key]:12.2f}" if key in row else f"{'-':>12}" for row in rows))
    by_size = {int(row["cases"]): row for row in rows}
    print("\nthe budget:")
    for n, limit in ((10_000, 3.0), (100_000, 5.0)):
        if n in by_size:
            row = by_size[n]
            print(
                f"  recall + select at {n:,}: {row['recall']:.2f} ms, asked <= {limit:g} "
                f"({row['recall'] / row['numpy_scan']:.1f} x the numpy scan)"
            )
    for n, row in by_size.items():
        over = row["reward"] - row["bare_commit"]
        print(f"  reward at {n:,}: bare commit {row['bare_commit']:.2f} ms + {over:.2f} ms, asked <= 1 ms more")
        if "embedding" in row:
            ratio = row["embedded_episode"] / row["embedding"]
            print(f"  episode with MiniLM at {n:,}: {ratio:.2f} x the embedding alone, asked <= 1.5, goal 1.3")
        for name, how in (("tight", "tight loop"), ("paced", f"a pause of {1000 * _PAUSE:.0f} ms after each")):
            if name in row:
                ours, bare = row[name], row[f"{name}_chroma"]
                print(
                    f"  episode beside a bare langchain_chroma search + add at {n:,}, {how}: "
                    f"{ours:.2f} ms against {bare:.2f}, {ours / bare:.2f} of it"
                )
    if 100_000 in by_size:
        print(f"  with where at 100,000: {by_size[100_000]['recall_where']:.2f} ms, asked <= 10")
    if {1_000, 100_000} <= set(by_size):
        print(f"  episode, 100k against 1k: {by_size[100_000]['episode'] / by_size[1_000]['episode']:.2f} x, asked <= 3")
    print(f"  a new case is recalled at once: {all(row['new_case_found_at_once'] for row in rows)}")


def main() -> None:
    """Measure at each size, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--chroma", type=int, default=10_000, metavar="N", help="compare with bare Chroma up to N cases")
    parser.add_argument("--out", type=Path, default=Path("results/latency.jsonl"))
    options = parser.parse_args()
    rows = []
    for n in options.sizes:
        rows.append(measure(n, options.times, chroma=n <= options.chroma))
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**rows[-1], "python": platform.python_version()}) + "\n")
    show(rows)


if __name__ == "__main__":
    main()
