"""Ten thousand tenants in one process: what do they take, and is each one's learning there when it comes back?

``python tests/torture/tenants.py`` prints one line of JSON and exits with 1 if a bound does not hold. Each tenant is a
namespace with five cases and five episodes. The embedder is the hashing one. ``--folder`` says where the memory is kept;
with ``--url`` it is in that PostgreSQL database, which must be empty.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from inside import predictions_of

from cascade_memory import CascadeMemory

CASES = EPISODES = 5
QUESTION = "which answer is right for topic 1?"
# The bounds, for 10,000 tenants. A share is one of the time that an episode, or all of them, took in the same run: seconds
# would say how fast the machine is, and what else it does.
BOUNDS = {
    "peak_mib": 450,  # 350, and 60 more where Chroma is far behind, as on a busy machine
    "descriptors": 150,
    "warm_share": 1,  # of an episode and the case that was added with it
    "let_go_share": 5,
    "close_share": 0.02,
    "doctor_share": 0.2,
    "doctor_mib": 500,
    "difference": 1e-6,
    "missing": 0,
}


def status(name: str) -> float:
    """Return a line of /proc/self/status in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def tenant(i: int) -> str:
    return f"tenant-{i}"


def play(memory: CascadeMemory, i: int) -> None:
    """Add five cases, and play five episodes."""
    name = tenant(i)
    cases = [(f"ticket {j} of tenant {i} about topic {j % 3}", f"answer {j % 3} of {i}") for j in range(CASES)]
    memory.acting(namespace=name).add(cases, progress=False)
    for j in range(EPISODES):
        recall = memory.acting(namespace=name).recall(f"question {j} of tenant {i} about topic {j % 3}")
        memory.acting(namespace=name).reward(
            recall.episode_id, float(j % 2), solution=f"answer {j % 3} of {i}" if j % 2 else None
        )


def fill(place: Path | str, tenants: int, watched: list[int]) -> dict[str, Any]:
    """Play every tenant, and compare what was learned for some of them before and after they were let go."""
    memory = CascadeMemory(place, embedder="hashing", learn="inline")
    began, descriptors, before = time.perf_counter(), 0, {}
    for i in range(tenants):
        play(memory, i)
        if i in watched:
            before[i] = predictions_of(memory, tenant(i), QUESTION)
        if i % 50 == 0:
            descriptors = max(descriptors, len(os.listdir("/proc/self/fd")))
        if i % 1000 == 0:
            print(i, f"{time.perf_counter() - began:.0f} s, {status('VmRSS'):.0f} MiB", file=sys.stderr, flush=True)  # noqa: T201
    filled = time.perf_counter() - began
    after = {i: predictions_of(memory, tenant(i), QUESTION) for i in watched}
    shuffled = random.Random(0).sample(range(tenants), min(tenants, 400))
    let_go = [recalled(memory, i) for i in shuffled]
    warm = [recalled(memory, i) for i in shuffled[-100:]]
    began = time.perf_counter()
    memory.sync()
    synced = time.perf_counter() - began
    descriptors = max(descriptors, len(os.listdir("/proc/self/fd")))
    began = time.perf_counter()
    memory.close()
    return {
        "tenants": tenants,
        "filled_s": filled,
        "rss_mib": status("VmRSS"),
        "peak_mib": status("VmHWM"),
        "descriptors": descriptors,
        "let_go_ms": 1000 * statistics.median(let_go),
        "warm_ms": 1000 * statistics.median(warm),
        "sync_s": synced,
        "close_s": time.perf_counter() - began,
        "difference": max(float(np.abs(before[i] - after[i]).max()) for i in watched),
    }


def recalled(memory: CascadeMemory, i: int) -> float:
    """Return how long a recall takes that finds the tenant's cases."""
    began = time.perf_counter()
    found = memory.acting(namespace=tenant(i)).recall(f"question of tenant {i} about topic 2")
    took = time.perf_counter() - began
    assert found.error is None, found.error
    return took


def reopened(place: Path | str, tenants: int) -> dict[str, Any]:
    """Look whether every case, every outcome and every tenant is there."""
    with CascadeMemory(place, embedder="hashing") as memory:
        stats, names = memory.stats(everywhere=True), memory.data.namespaces()
    successes = EPISODES // 2
    missing = (
        abs(tenants - len(names)) + abs(tenants * EPISODES - stats.rewards) + abs(tenants * (CASES + successes) - stats.cases)
    )
    return {"missing": missing, "cases": stats.cases}


def examined(place: Path | str) -> dict[str, Any]:
    """Run the doctor in a process of its own."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "cascade_memory", "data", "doctor", str(place), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - began
    wrong = [check for check in json.loads(done.stdout or "[]") if not check["ok"] and check["name"] != "free disk"]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"doctor_s": took, "doctor_mib": peak, "doctor_wrong": wrong or done.stderr[-500:] * (done.returncode > 1)}


def main() -> int:
    """Measure, print, and compare with the bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--url", help="an empty PostgreSQL database, instead of a folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        place: Path | str = options.url or (options.folder or Path(temporary)) / "memory"
        watched = list(range(0, options.tenants, max(1, options.tenants // 20)))
        found = fill(place, options.tenants, watched) | reopened(place, options.tenants) | examined(place)
    episode = 1000 * found["filled_s"] / (options.tenants * EPISODES)
    found |= {"warm_share": found["warm_ms"] / episode, "let_go_share": found["let_go_ms"] / episode}
    found |= {"close_share": found["close_s"] / found["filled_s"], "doctor_share": found["doctor_s"] / found["filled_s"]}
    found["exceeded"] = {name: found[name] for name, most in BOUNDS.items() if found[name] > most}
    print(json.dumps(found))  # noqa: T201
    return 1 if found["exceeded"] or found["doctor_wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
