"""One measurement of the scale benchmark, in its own process, so that the memory of others is not measured.

python examples/benchmarks/scale_worker.py JOB.json ROW.json        # started by scale.py
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from real_texts import KnownVectors, load
from scale_tools import BareCommit, Clock, K, accepts, bootstrapped, disk_mib, exact, memory_mib, numpy_scan_ms, wait_for_chroma

from cascade_memory import CascadeMemory, Retention

Job = dict[str, Any]
Row = dict[str, Any]
WORTH_ASKING = 20_000  # from this number of cases on, Chroma's index is waited for


def open_memory(job: Job, embedder: KnownVectors, **more: Any) -> CascadeMemory:
    """Open the job's folder."""
    options = {**job.get("options", {}), **more}
    return CascadeMemory(job["folder"], embedder=embedder, **options)


def fill(job: Job) -> Row:
    """Add n cases in bulk and feed all of them to Chroma."""
    texts = load(job["texts"], seed=job["seed"], cache=Path(job["cache"]))
    embedder = KnownVectors(texts.texts, texts.vectors)
    began = time.perf_counter()
    with open_memory(job, embedder) as memory:
        memory.add(texts.cases(0, job["n"]), progress=True)
        added = time.perf_counter()
        memory.sync()
        synced = time.perf_counter()
    return {"add_s": added - began, "sync_s": synced - added, "close_s": time.perf_counter() - synced}


def serve(job: Job) -> Row:
    """Open a filled folder cold, then recall and reward with queries that are not stored."""
    queries = json.loads(Path(job["queries"]).read_text(encoding="utf-8"))
    vectors = np.load(job["queries_vectors"])
    embedder = KnownVectors([query for query, _ in queries], vectors)
    times = job["times"]
    before = memory_mib()
    began = time.perf_counter()
    memory = open_memory(job, embedder)
    opened = time.perf_counter()
    memory.recall(queries[-1][0])
    row: Row = {"open_s": opened - began, "first_recall_s": time.perf_counter() - began}
    if job["n"] >= WORTH_ASKING and (job["role"] == "owner" or "chroma" in job.get("options", {})):
        row["chroma_served"] = wait_for_chroma(memory)
        row["chroma_serves_s"] = time.perf_counter() - began
    row["rss_before"] = before["rss"]
    for query, _ in queries[:20]:
        memory.recall(query)
    row.update(memory_mib())
    recall, where = Clock(), Clock()
    for i in range(times):
        with recall:
            memory.recall(queries[i][0])
        with where:
            memory.recall(queries[i][0], where={"user": f"u{i % 10}"})
    row.update({**recall.row("recall"), **where.row("recall_where")})
    row.update(_episodes(job, memory, queries[times : 2 * times]))
    row["numpy_scan"] = numpy_scan_ms(np.load(job["vectors"], mmap_mode="r")[: job["n"]].copy(), vectors[:times])
    row["rss_after"] = memory_mib()["rss"] - job["n"] * vectors.shape[1] * 4 / 2**20
    row.update(disk_mib(Path(job["folder"])))
    row["failures"] = dict(memory.health().failures)
    began = time.perf_counter()
    memory.close()
    row["close_s"] = time.perf_counter() - began
    return row


def _episodes(job: Job, memory: CascadeMemory, queries: list[list[str]]) -> Row:
    """Recall and reward with new cases, and make a bare commit before each. Check that new cases are found at once."""
    bare, commit, recall, reward = BareCommit(Path(job["folder"]).parent), Clock(), Clock(), Clock()
    found: list[bool] = []
    for i, (query, solution) in enumerate(queries):
        with commit:
            bare()
        with recall:
            recalled = memory.recall(query)
        with reward:
            memory.reward(recalled.episode_id, 1.0 if i % 3 else 0.0, solution=solution)
        if i % 3 and i % 10 == 1:
            found.append(memory.cases.search(query, k=1).cases[0].query == query)
    bare.close()
    episode = [round(a + b, 4) for a, b in zip(recall.wall, reward.wall, strict=True)]
    cpu = [round(a + b, 4) for a, b in zip(recall.thread, reward.thread, strict=True)]
    return {
        **commit.row("bare_commit"),
        **reward.row("reward"),
        "new_case_found_at_once": all(found),
        "episode": float(np.median(episode)),
        "episode_ms": episode,
        "episode_cpu": float(np.median(cpu)),
        "episode_cpu_ms": cpu,
    }


def hold(job: Job) -> Row:
    """Own a folder until standard input is closed."""
    queries = json.loads(Path(job["queries"]).read_text(encoding="utf-8"))
    embedder = KnownVectors([query for query, _ in queries], np.load(job["queries_vectors"]))
    with open_memory(job, embedder) as memory:
        memory.recall(queries[-1][0])
        print("ready", flush=True)
        sys.stdin.read()
    return {}


def index(job: Job) -> Row:
    """Compare recall (Chroma's index, and the newest cases that Chroma has not received) with an exact scan."""
    texts = load(job["texts"], seed=job["seed"], cache=Path(job["cache"]))
    n, times = job["n"], job["times"]
    held = list(range(n, n + times + 100))  # not stored at first: the queries, then the newest cases
    embedder = KnownVectors(texts.texts, texts.vectors)
    vectors = np.array(texts.vectors[: n + times + 100])
    stored = list(range(n))
    shares, tails, chunk = [], [], 10
    with open_memory(job, embedder, k=K) as memory:
        memory.cases.search(texts.texts[n])
        served = wait_for_chroma(memory)
        for start in range(0, times, chunk):
            tail = held[times + start * 100 // times : times + (start + chunk) * 100 // times]
            if tail:
                memory.add([texts.cases(i, i + 1)[0] for i in tail], progress=False)
                stored += tail
            known = vectors[stored]
            for i in held[start : start + chunk]:
                cosines = known @ vectors[i]
                least = cosines[exact(known, vectors[i])[-1]] - 1e-6  # of equally similar cases, any is right
                recalled = memory.cases.search(texts.texts[i])
                own = embedder.embed([case.query for case in recalled.cases]) @ vectors[i]
                shares.append(float((own >= least).sum()) / K)
                feeder: Any = memory._engine.feeder
                tails.append(len(stored) - feeder.covered if feeder.covered else -1)  # keys start at 1
    asked = [share for share, tail in zip(shares, tails, strict=True) if tail >= 0]
    mean = bootstrapped(lambda rng: float(np.mean(asked if rng is None else rng.choice(asked, len(asked))))) if asked else None
    return {
        "served": served,
        "queries": len(asked),
        "recall_interval": mean,
        "with_tail": sum(tail > 0 for tail in tails),
        "recall_at_32": float(np.mean(asked)) if asked else float("nan"),
        "recall_worst": min(asked, default=float("nan")),
        "recall_below_0.9": sum(share < 0.9 for share in asked),
    }


def episodes(job: Job) -> Row:
    """Play many episodes in a namespace of constant size; write one row of measurements per block."""
    texts = load(job["texts"], seed=job["seed"], cache=Path(job["cache"]))
    bounded = accepts("max_cases")
    pool = len(texts.texts) if bounded else job["n"]  # without max_cases, use only stored pairs: then no case is added
    rng = np.random.default_rng([job["seed"], 3])
    folder, blocks = Path(job["folder"]), []
    bare = BareCommit(folder.parent)
    embedder = KnownVectors(texts.texts, np.array(texts.vectors))
    with open_memory(job, embedder, **({"retention": Retention(max_cases=job["n"])} if bounded else {})) as memory:
        for done in range(0, job["episodes"], job["block"]):
            recall, reward, commit = Clock(), Clock(), Clock()
            began, cpu, wins = time.perf_counter(), time.process_time(), 0
            size = min(job["block"], job["episodes"] - done)
            for i in rng.integers(pool, size=size).tolist():
                with recall:
                    recalled = memory.recall(texts.texts[i])
                right = bool(recalled.cases) and recalled.cases[0].solution == texts.solutions[i]
                won = right or rng.random() < 0.5
                with reward:
                    memory.reward(recalled.episode_id, float(won), solution=texts.solutions[i] if won else None)
                wins += won
            for _ in range(50):
                with commit:
                    bare()
            block = {
                "part": "episodes", "cases": job["n"], "bounded": bounded, "episodes": done + size,
                "episode": float(np.median(np.add(recall.wall, reward.wall))),
                "episode_mean": 1000 * (time.perf_counter() - began) / size,
                "episode_cpu": 1000 * (time.process_time() - cpu) / size,
                "success": wins / size,
                **recall.row("recall"), **reward.row("reward"), **commit.row("bare_commit"),
                **memory_mib(), **disk_mib(folder),
            }  # fmt: skip
            blocks.append(block)
            with Path(job["out"]).open("a", encoding="utf-8") as file:
                file.write(json.dumps(block) + "\n")
            print(
                f"  {block['episodes']:>9,} episodes: recall {block['recall']:.2f} ms, reward {block['reward']:.2f} ms, "
                f"all {block['episode_mean']:.2f} ms, CPU {block['episode_cpu']:.2f} ms, {block['disk']:,.0f} MiB on disk, "
                f"{block['rss']:,.0f} MiB of memory, success {block['success']:.2f}",
                flush=True,
            )
        began = time.perf_counter()
        stats = memory.stats()
        stats_s = time.perf_counter() - began
        began = time.perf_counter()
        failures = dict(memory.health().failures)
    return {
        "blocks": blocks,
        "stats_s": stats_s,
        "close_s": time.perf_counter() - began,
        "cases": stats.cases,
        "failures": failures,
    }


def main() -> None:
    """Do the job that a file describes, and write its row."""
    job: Job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    work = {"fill": fill, "serve": serve, "hold": hold, "index": index, "episodes": episodes}
    row = work[job["work"]](job)
    Path(sys.argv[2]).write_text(json.dumps(row), encoding="utf-8")


if __name__ == "__main__":
    main()
