"""Do many small tenants learn faster together? Each has its own cases; with policy_scope="shared" they share weights.

    CASCADE_DATA=... python examples/benchmarks/tenants.py

The tasks of a stream are distributed over tenants, who take turns. The solver is the SIMULATED one of cascade-memory bench.
A case is always shown, so only a better order of the cases can help. The table shows the success over all tenants with five
seeds, and paired differences with 95 % intervals.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.stage import Folders, simulated_stage
from cascade_memory.evaluation.bench.summary import interval

STREAMS = ("banking77", "ddxplus", "rca", "sentifin")
ARMS = ("similarity", "namespace", "shared")


def play(stream_name: str, arm: str, tenants: int, episodes: int, seed: int) -> dict[str, object]:
    """Play one stream and return its row."""
    stage = simulated_stage(Run(stream_name, arm, seed), Folders(folder_of_data(None), Path("results")))
    n = min(len(stage.queries), tenants * episodes)
    success = np.zeros(n, bool)
    memory = CascadeMemory(
        embedder=stage.embedder,
        ranker="similarity" if arm == "similarity" else "light",
        ranking=Ranking(policy_scope="shared" if arm == "shared" else "namespace", abstain=False),
        learn="inline",
    )
    with memory:
        for i in range(n):
            tenant = f"tenant{i % tenants}"
            recall = memory.acting(namespace=tenant).recall(stage.queries[i])
            attempt = stage.solver.attempt(i, recall.cases)
            success[i] = attempt.success
            memory.acting(namespace=tenant).reward(recall.episode_id, attempt.success, solution=attempt.answer)
    row = {"stream": stream_name, "arm": arm, "tenants": tenants, "seed": seed, "simulated": True, "n": n}
    return {**row, "success": float(success.mean()), "last_half": float(success[n // 2 :].mean())}


def main() -> None:
    """Play every stream with every method and seed, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=STREAMS)
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=100, help="number of episodes of each tenant")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/tenants.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    runs = list(product(options.streams, ARMS, [options.tenants], [options.episodes], range(options.seeds)))
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(play, *zip(*runs, strict=True)))
    options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"success in %, {options.tenants} tenants, {options.seeds} seeds, SIMULATED solver")
    for stream in options.streams:
        mine = [row for row in rows if row["stream"] == stream]
        by_arm = {arm: np.array([100 * float(str(row["success"])) for row in mine if row["arm"] == arm]) for arm in ARMS}
        mean = "  ".join(f"{arm} {values.mean():.1f}" for arm, values in by_arm.items())
        gain, half = interval((by_arm["shared"] - by_arm["namespace"]).tolist())
        print(f"{stream:10} {mean}   shared - namespace {gain:+.2f} ± {half:.2f}")


if __name__ == "__main__":
    main()
