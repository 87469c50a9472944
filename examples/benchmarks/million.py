"""How does a memory grow, in a folder or in PostgreSQL, with its own Chroma or a server? At each size a new worker opens it.

    export CASCADE_DATA=...                                    # the folder with the task streams
    python examples/benchmarks/million.py --place /tmp/grown --sizes 1000 10000 100000 300000 1000000 --folders all=/tmp/grown
    python examples/benchmarks/million.py --place "postgresql://me@/agents?host=/var/run/postgresql" \
        --chroma http://127.0.0.1:8000 --sizes 100000 300000 1000000 \
        --servers postgres=PID chroma=PID --folders postgres=PATH chroma=PATH

A folder must be new. The schema ``cascade_memory`` of a database is DROPPED first. The texts are real ones, repeated with a
fifth of their words replaced by words of other texts. The hashing embedder's vectors are computed before the clock starts. An
exact scan with numpy over the same vectors, in turns with the recalls, says how fast the machine is and what is to be found.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from database import Known, empty, ms
from real_texts import texts_only
from scale_tools import K, exact, wait_for_chroma

from cascade_memory import CascadeMemory
from cascade_memory.stores.index import EXACT_LIMIT

_REAL = 20_000
_AT_ONCE = 2_000
_ASKED = 300


def cases(start: int, stop: int) -> Iterator[tuple[str, str]]:
    """Yield cases by number: the first are real texts, the others repeat them with changes."""
    real = texts_only(_REAL)
    for number in range(start, stop):
        words = real[number % _REAL].split()
        if number >= _REAL:
            rng = random.Random(number)
            other = real[rng.randrange(_REAL)].split()
            for _ in range(len(words) // 5 + 1):
                words[rng.randrange(len(words))] = rng.choice(other)
        yield " ".join(words), f"answer {number % 49_999}"


def fill(place: str, chroma: str | None, start: int, stop: int, vectors: Path) -> dict[str, float]:
    """Add cases and feed Chroma; return the seconds that each took. The vectors are kept for the exact scan."""
    embedder, added = Known(), 0.0
    with (
        CascadeMemory(place, chroma=chroma, embedder=embedder, learn="off", deadline=None) as memory,
        vectors.open("ab") as kept,
    ):
        memory.cases.search("load the namespace")
        for first in range(start, stop, _AT_ONCE):
            some = list(cases(first, min(first + _AT_ONCE, stop)))
            embedder.known.clear()
            embedder.embed([text for text, _ in some]).astype(np.float32).tofile(kept)
            began = time.perf_counter()
            memory.add(some, progress=False)
            added += time.perf_counter() - began
        began = time.perf_counter()
        memory.sync()
        return {"add_s": round(added, 1), "then_feed_s": round(time.perf_counter() - began, 1)}


def status(name: str) -> float:
    """Return a figure about this process's memory, in MiB."""
    line = next(line for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines() if line.startswith(name))
    return round(int(line.split()[1]) / 1024)


def work(place: str, chroma: str | None, vectors: str, answers: Any) -> None:
    """Be a new worker: open the memory, recall in turns with an exact scan, and reward."""
    embedder = Known()
    asked = [text for text, _ in cases(10_000_000, 10_000_000 + _ASKED)]
    embedder.embed(asked)
    before = status("VmRSS")
    began = time.perf_counter()
    with CascadeMemory(place, chroma=chroma, embedder=embedder, deadline=None) as memory:
        opened = time.perf_counter()
        memory.recall(asked[0])
        row: dict[str, Any] = {"open_s": round(opened - began, 2), "first_recall_s": round(time.perf_counter() - began, 2)}
        if memory.stats().cases > EXACT_LIMIT:
            wait_for_chroma(memory, 3_600)
        row |= {"chroma_serves_s": round(time.perf_counter() - began, 1), "rss_before_mib": before}
        row |= {"rss_mib": status("VmRSS"), "peak_mib": status("VmHWM")}
        stored = np.fromfile(vectors, np.float32).reshape(-1, embedder.dimension)
        recalls, scans, rewards, shares = [], [], [], []
        for number, text in enumerate(asked):
            time.sleep(0.02)
            began = time.perf_counter()
            recalled = memory.recall(text)
            recalls.append(time.perf_counter() - began)
            if number % 3 == 0:
                query = embedder.embed([text])[0]
                began = time.perf_counter()
                least = stored[exact(stored, query)[-1]] @ query
                scans.append(time.perf_counter() - began)
                found = embedder.embed([case.query for case in memory.cases.search(text, k=K).cases]) @ query
                shares.append(float((found >= least - 1e-6).mean()))  # of equally similar cases, any is right
            began = time.perf_counter()
            memory.reward(recalled.episode_id, 0.0)
            rewards.append(time.perf_counter() - began)
        row |= {"recall_p50": ms(recalls), "recall_p95": ms(recalls, 95), "exact_scan_p50": ms(scans)}
        row |= {"reward_p50": ms(rewards), "recall_at_32": round(float(np.mean(shares)), 4)}
    answers.put(row)


def measured(place: str, chroma: str | None, vectors: Path) -> dict[str, Any]:
    """Let a worker of its own measure."""
    method = multiprocessing.get_context("spawn")
    answers = method.Queue()
    worker = method.Process(target=work, args=(place, chroma, str(vectors), answers))
    worker.start()
    row: dict[str, Any] = answers.get()
    worker.join()
    return row


def memory_of(pid: int) -> int:
    """Return the memory of a process and its children in MiB; what they share is divided among them."""
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, encoding="utf-8", check=False).stdout.split()
    total = 0
    for one in [str(pid), *children]:
        lines = Path(f"/proc/{one}/smaps_rollup").read_text(encoding="utf-8").splitlines()
        total += int(next(line for line in lines if line.startswith("Pss:")).split()[1])
    return total // 1024


def size_of(folder: str) -> int:
    """Return how much disk a folder takes, in MiB."""
    return int(subprocess.run(["du", "-sm", folder], capture_output=True, encoding="utf-8", check=True).stdout.split()[0])


def main() -> None:
    """Fill, measure, print a line for each size, and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", required=True, help="a new folder, or the URL of a database")
    parser.add_argument("--chroma", help="the address of a Chroma server; needed for a database")
    parser.add_argument("--sizes", nargs="+", type=int, default=[100_000, 250_000, 500_000, 1_000_000])
    parser.add_argument("--servers", nargs="*", default=[], help="name=process whose memory is reported")
    parser.add_argument("--folders", nargs="*", default=[], help="name=folder whose size is reported")
    parser.add_argument("--out", type=Path, default=Path("results/million.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.place.startswith("postgresql:"):
        empty(options.place)
    elif Path(options.place).exists():
        parser.error(f"{options.place} exists already: name a new folder, since this fills it with cases that nobody wants")
    start, vectors = 0, options.out.with_suffix(".vectors")
    vectors.unlink(missing_ok=True)
    for size in options.sizes:
        filled = fill(options.place, options.chroma, start, size, vectors)
        start = size
        row = {"cases": size, **measured(options.place, options.chroma, vectors), **filled}
        row |= {f"{name}_mib": memory_of(int(pid)) for name, pid in (one.split("=") for one in options.servers)}
        row |= {f"{name}_disk_mib": size_of(folder) for name, folder in (one.split("=", 1) for one in options.folders)}
        row["load_average"] = round(os.getloadavg()[0], 1)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    vectors.unlink()


if __name__ == "__main__":
    main()
