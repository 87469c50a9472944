"""What does a memory in PostgreSQL cost beside one in a folder? Recalls, rewards, round trips; near and far; many workers.

    export CASCADE_DATA=...                                    # the folder with the task streams
    python examples/benchmarks/database.py --url "postgresql://me@/agents?host=/var/run/postgresql"
    python examples/benchmarks/database.py --url ... --sizes 100000 --chroma http://127.0.0.1:8000 --parts sizes
    python examples/benchmarks/database.py --url ... --parts workers

The database must be empty: its schema ``cascade_memory`` is DROPPED before every part. It must be reached by a Unix socket, so
that ``far`` can put 2 ms of network before it, each way. Real texts; the hashing embedder's vectors are looked up, so embedding
is excluded. The folder is measured in the same run, in turns with the database: one recall here, one there.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import threading
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from delayed import delayed
from psycopg.conninfo import conninfo_to_dict
from real_texts import texts_only

from cascade_memory import CascadeMemory
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.ledger.postgres.batch import Batch

PARTS = ("sizes", "far", "workers")
_trips: Counter[int] = Counter()


class Known:
    """Looks vectors up, so that embedding is not measured."""

    def __init__(self) -> None:
        self._embedder = HashingEmbedder()
        self.identity, self.dimension = self._embedder.identity, self._embedder.dimension
        self.known: dict[str, Any] = {}

    def embed(self, texts: Any) -> Any:
        """Embed a text once."""
        new = [text for text in texts if text not in self.known]
        if new:
            self.known.update(zip(new, self._embedder.embed(new), strict=True))
        return np.stack([self.known[text] for text in texts])


def count_round_trips() -> None:
    """Count the round trips of each thread."""
    send = Batch.send

    def counting(self: Batch) -> None:
        before = self.trips
        try:
            send(self)
        finally:
            _trips[threading.get_ident()] += self.trips - before

    Batch.send = counting  # type: ignore[method-assign]


def empty(url: str) -> None:
    """Drop the memory that an earlier part has left."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS cascade_memory CASCADE")


def ms(seconds: list[float], percent: float = 50) -> float:
    """Return a percentile in milliseconds."""
    return round(1e3 * float(np.percentile(seconds, percent)), 2)


def in_turns(size: int, times: int, places: dict[str, dict[str, Any]], pause: float = 0.05) -> list[dict[str, Any]]:
    """Fill each place with the same cases, then recall and reward here and there in turns; return a row for each."""
    embedder, texts = Known(), texts_only(size + times + 1)
    stored, asked = texts[:size], texts[size : size + times + 1]
    embedder.embed(asked)
    rows: dict[str, dict[str, Any]] = {}
    memories: dict[str, CascadeMemory] = {}
    for name, options in places.items():
        memory = CascadeMemory(**options, embedder=embedder, deadline=None, k=1)
        began = time.perf_counter()
        for start in range(0, size, 1_000):
            some = enumerate(stored[start : start + 1_000], start)
            memory.add([(text, f"answer {number % 997}") for number, text in some], progress=False)
        rows[name] = {"place": name, "cases": size, "load_s": round(time.perf_counter() - began, 1)}
        memory.sync()
        memory.recall(asked[-1])
        memories[name] = memory
    spent: dict[str, tuple[list[float], list[float], list[int], list[int]]] = {name: ([], [], [], []) for name in places}
    me = threading.get_ident()
    for number, text in enumerate(asked[:times]):
        for name, memory in memories.items():
            recalls, rewards, there, back = spent[name]
            time.sleep(pause)
            before, began = _trips[me], time.perf_counter()
            recall = memory.recall(text)
            recalls.append(time.perf_counter() - began)
            there.append(_trips[me] - before)
            before, began = _trips[me], time.perf_counter()
            memory.reward(recall.episode_id, float(number % 3 > 0), solution=f"answer {number % 997}")
            rewards.append(time.perf_counter() - began)
            back.append(_trips[me] - before)
    for name, (recalls, rewards, there, back) in spent.items():
        rows[name] |= {
            "recall_p50": ms(recalls), "recall_p95": ms(recalls, 95), "reward_p50": ms(rewards), "reward_p95": ms(rewards, 95),
            "trips_recall": max(there), "trips_reward": max(back), "chroma": memories[name].health().chroma,
            "rss_mib": round(int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20),
            "load_average": round(os.getloadavg()[0], 1),
        }  # fmt: skip
        memories[name].close()
    return list(rows.values())


def work(place: Any, namespace: str, texts: list[str], episodes: int, start: Any, done: Any) -> None:
    """Be one worker: recall and reward, and say how long that took."""
    with CascadeMemory(place, embedder="hashing", namespace=namespace) as memory:
        memory.recall(texts[0])
        start.wait()
        began = time.perf_counter()
        for number in range(episodes):
            recall = memory.recall(texts[number % len(texts)])
            memory.reward(recall.episode_id, float(number % 3 > 0), solution=f"answer {number % 97}")
        done.put(time.perf_counter() - began)


def with_workers(place: Any, count: int, shared: bool, episodes: int) -> dict[str, Any]:
    """Let some workers work at the same time; return the episodes per second of all of them."""
    method = multiprocessing.get_context("spawn")
    start, done = method.Barrier(count), method.Queue()
    texts = texts_only(200 * count)
    jobs = [
        method.Process(
            target=work, args=(place, "all" if shared else f"of {i}", texts[i::count], episodes // count, start, done)
        )
        for i in range(count)
    ]
    for job in jobs:
        job.start()
    slowest = max(done.get() for _ in jobs)
    for job in jobs:
        job.join()
    return {"workers": count, "namespaces": "one" if shared else "one each", "per_second": round(episodes / slowest, 1)}


def main() -> None:
    """Measure, print a line for each row, and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--chroma")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000])
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=800)
    parser.add_argument("--delay", type=float, default=0.002, help="seconds of network each way, for the part far")
    parser.add_argument("--out", type=Path, default=Path("results/database.jsonl"))
    options = parser.parse_args()
    count_round_trips()
    rows: list[dict[str, Any]] = []
    parts = conninfo_to_dict(options.url)
    with tempfile.TemporaryDirectory() as work_folder:
        for part in [part for part in ("sizes", "far") if part in options.parts]:
            socket = f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}"
            for size in options.sizes:
                empty(options.url)
                with delayed(socket, options.delay) if part == "far" else nullcontext() as port:
                    url = options.url if port is None else f"postgresql://{parts['user']}@127.0.0.1:{port}/{parts['dbname']}"
                    places = {
                        "folder": {"path": Path(work_folder) / f"{part}-{size}"},
                        "database": {"path": url, "chroma": options.chroma},
                    }
                    rows += [{"part": part, **row} for row in in_turns(size, options.times, places)]
        if "workers" in options.parts:
            for shared in (True, False):
                for count in (1, 2, 4, 8):
                    empty(options.url)
                    for name, place in (("folder", f"{work_folder}/w{shared}{count}"), ("database", options.url)):
                        row = with_workers(place, count, shared, options.episodes)
                        rows.append({"part": "workers", "place": name, **row, "load_average": round(os.getloadavg()[0], 1)})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
            print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
