"""How does a memory in PostgreSQL with a Chroma server grow? At each size a new worker opens it and recalls.

    export CASCADE_DATA=...                                    # the folder with the task streams
    python examples/benchmarks/million.py --url "postgresql://me@/agents?host=/var/run/postgresql" \
        --chroma http://127.0.0.1:8000 --sizes 100000 300000 1000000 \
        --servers postgres=PID chroma=PID --folders postgres=PATH chroma=PATH

The schema ``cascade_memory`` of the database is DROPPED first. The texts are real ones, repeated with a fifth of their words
replaced by words of other texts. The hashing embedder's vectors are computed before the clock starts.
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

from cascade_memory import CascadeMemory

_REAL = 20_000
_AT_ONCE = 2_000
_ASKED = 300
_K = 32


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


def fill(url: str, chroma: str, start: int, stop: int) -> dict[str, float]:
    """Add cases and feed the server; return the seconds that each took."""
    embedder, added = Known(), 0.0
    with CascadeMemory(url, chroma=chroma, embedder=embedder, learn="off", deadline=None) as memory:
        memory.cases.search("load the namespace")
        for first in range(start, stop, _AT_ONCE):
            some = list(cases(first, min(first + _AT_ONCE, stop)))
            embedder.known.clear()
            embedder.embed([text for text, _ in some])
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


def work(url: str, chroma: str | None, answers: Any) -> None:
    """Be a new worker: open the memory and recall. Without Chroma the scan is exact."""
    embedder = Known()
    asked = [text for text, _ in cases(10_000_000, 10_000_000 + _ASKED)]
    embedder.embed(asked)
    began, before = time.perf_counter(), status("VmRSS")
    with CascadeMemory(url, chroma=chroma, embedder=embedder, deadline=None) as memory:
        memory.recall(asked[0])
        row: dict[str, Any] = {"open_s": round(time.perf_counter() - began, 1), "rss_before_mib": before}
        while chroma and memory.health().chroma != "clean":
            time.sleep(0.1)
        took = []
        for text in asked:
            time.sleep(0.02)
            began = time.perf_counter()
            memory.recall(text)
            took.append(time.perf_counter() - began)
        found = [[case.id for case in memory.cases.search(text, k=_K).cases] for text in asked[:100]]
        row |= {"recall_p50": ms(took), "recall_p95": ms(took, 95), "rss_mib": status("VmRSS"), "peak_mib": status("VmHWM")}
    answers.put((row, found))


def measured(url: str, chroma: str, size: int) -> dict[str, Any]:
    """Let a worker recall with Chroma and another one without it; compare what they find."""
    method, results = multiprocessing.get_context("spawn"), []
    for server in (chroma, None):
        answers = method.Queue()
        worker = method.Process(target=work, args=(url, server, answers))
        worker.start()
        results.append(answers.get())
        worker.join()
    (row, found), (exact_row, exact) = results
    overlap = [len({*a} & {*b}) / _K for a, b in zip(found, exact, strict=True)]
    exactly = {f"exact_{name}": value for name, value in exact_row.items()}
    return {"cases": size, **row, "recall_at_32": round(float(np.mean(overlap)), 4), **exactly}


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
    parser.add_argument("--url", required=True)
    parser.add_argument("--chroma", required=True)
    parser.add_argument("--sizes", nargs="+", type=int, default=[100_000, 250_000, 500_000, 1_000_000])
    parser.add_argument("--servers", nargs="*", default=[], help="name=process whose memory is reported")
    parser.add_argument("--folders", nargs="*", default=[], help="name=folder whose size is reported")
    parser.add_argument("--out", type=Path, default=Path("results/million.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    empty(options.url)
    start = 0
    for size in options.sizes:
        filled = fill(options.url, options.chroma, start, size)
        start = size
        row = measured(options.url, options.chroma, size) | filled
        row |= {f"{name}_mib": memory_of(int(pid)) for name, pid in (one.split("=") for one in options.servers)}
        row |= {f"{name}_disk_mib": size_of(folder) for name, folder in (one.split("=", 1) for one in options.folders)}
        row["load_average"] = round(os.getloadavg()[0], 1)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
