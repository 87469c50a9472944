"""Does the memory learn? Task streams, a SIMULATED solver, every baseline, five seeds, raw rows kept.

    CASCADE_DATA=... python examples/benchmarks/learning.py --part main
    CASCADE_DATA=... python examples/benchmarks/learning.py --part ablation
    CASCADE_DATA=... python examples/benchmarks/learning.py --part adversity
    CASCADE_DATA=... python examples/benchmarks/learning.py --part rivals --streams Banking77 DDXPlus RCA

A run is one stream in one order with one solver: the seed shuffles both. Rows go to ``results/learning.jsonl``; a row that is
there already is not run again (delete the file to start over). The tables give the mean over seeds and a 95 % interval of
the paired difference to similarity (Student's t).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import report
import rules
from streams import FILES, Stream, load
from tqdm import tqdm

from cascade_memory import CascadeMemory, Ranker
from cascade_memory.assembly import rankers
from cascade_memory.encoders.minilm import MiniLMEmbedder
from cascade_memory.evaluation.solver import SimulatedSolver
from cascade_memory.evaluation.stream import PrecomputedEmbedder
from cascade_memory.memory.memory import Memory

MISLED = (0.0, 0.25, 0.5)
ADVERSITIES = ("none", "20% flipped", "50% missing", "100 late", "500 wrong cases")


@dataclass(frozen=True, slots=True)
class Run:
    """What identifies a row."""

    part: str
    stream: str
    method: str
    misled: float
    seed: int
    adversity: str = "none"
    limit: int | None = None


def methods(part: str) -> list[str]:
    """Return the methods of a part."""
    if part == "ablation":
        return ["similarity", *ABLATIONS]
    if part == "rivals":
        return list(RIVALS)
    if part == "adversity":
        return ["zero-shot", "similarity", "CASCADE", "CASCADE, always a case"]
    static = [*rules.ranking_rules(), *rules.abstaining_rules()]
    return ["zero-shot", "random", "similarity", *static, "Neural-LinLogUCB", "CASCADE, always a case", "CASCADE"]


# The paper's rivals on the light features, with the paper's alpha of 0.1 throughout: nothing is tuned per stream.
RIVALS: dict[str, str | Ranker] = {
    "zero-shot": "zero-shot",
    "ICRL": "latest",
    "ICRLPlus": "latest",
    "random": "random",
    "NP-CBR": "similarity",
    "LinLogUCB": "linlogucb",
    "NeuralLogUCB": "neural-logucb",
    "Neural-LinUCB": "neural-linucb",
    "Thompson": "thompson",
    "w/o exploration": rankers.neural_linlogucb(alpha=0.0),
    "Neural-LinLogUCB": "neural-linlogucb",
    "Neural-LinLogUCB, exact theta": rankers.neural_linlogucb(refit="exact"),
    "CASCADE, always a case": "light",
    "CASCADE": "light",
}
TRIALS = 32  # that in-context reinforcement learning shows

ABLATIONS = {
    "CASCADE": rules.light(),
    "without hindsight": rules.light(hindsight=False),
    "without words and letters": rules.without("words", "letters", "solution words"),
    "without solution words": rules.without("solution words"),
    "without clusters": rules.without("cluster"),
    "without exploration": rules.exploring(0.0),
    "ten times the exploration": rules.exploring(1.0),
    "without abstaining": rules.light(),
}


def open_memory(method: str, embedder: PrecomputedEmbedder) -> Memory | None:
    """Return a fresh memory in RAM for a method; None for no memory at all."""
    if method == "zero-shot":
        return None
    ranker = {"similarity": "similarity", **RIVALS, **rules.ranking_rules(), **rules.abstaining_rules(), **ABLATIONS}.get(
        method, "light"
    )
    return CascadeMemory(
        embedder=embedder,
        ranker=ranker,
        learn="inline",
        abstain=method not in ("CASCADE, always a case", "without abstaining"),
        matcher=None if method == "without hindsight" else "exact",
        k=TRIALS if method.startswith("ICRL") else 1,
        retain_at=0.0 if method == "ICRL" else 1.0,  # failures are shown as well
    )


@lru_cache(maxsize=4)
def embedded(name: str, limit: int | None) -> tuple[Stream, PrecomputedEmbedder]:
    """Return a stream with its vectors, computed once per process."""
    stream = load(name, limit)
    return stream, PrecomputedEmbedder(MiniLMEmbedder(), stream.queries)


def play(run: Run) -> dict[str, object]:
    """Play one stream and return its row."""
    base, embedder = embedded(run.stream, run.limit)
    stream = base.shuffled(run.seed)
    solver = SimulatedSolver(stream.labels, zero_shot=stream.zero_shot, misled=run.misled, seed=run.seed)
    memory = open_memory(run.method, embedder)
    rng = np.random.default_rng([run.seed, 11])
    n = len(stream.queries)
    flipped = rng.random(n) < (0.2 if run.adversity == "20% flipped" else 0.0)
    missing = rng.random(n) < (0.5 if run.adversity == "50% missing" else 0.0)
    delay = 100 if run.adversity == "100 late" else 0
    if memory is not None and run.adversity == "500 wrong cases":
        wrong = rng.permutation(n)[:500]  # of the stream itself: each will meet its own poisoned twin
        memory.add([(stream.queries[i], solver.wrong_answer(i)) for i in wrong], progress=False)
    success, shown, fitting = np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, bool)
    late: deque[tuple[str, bool, str]] = deque()
    began = time.perf_counter()
    for i, query in enumerate(stream.queries):
        if memory is None:
            success[i] = solver.solve(i, None).success
            continue
        recall = memory.recall(query)
        # Of several the simulated solver picks the right one, if it is there: kinder to in-context learning than a real one.
        cases = [str(one.solution) for one in recall.cases]
        case = next((one for one in cases if solver.is_right(i, one)), cases[0] if cases else None)
        attempt = solver.solve(i, case)
        success[i], shown[i] = attempt.success, case is not None
        fitting[i] = case is not None and solver.is_right(i, case)
        if not missing[i]:
            late.append((recall.episode_id, attempt.success != bool(flipped[i]), attempt.answer))
        while len(late) > delay:
            episode, reward, answer = late.popleft()
            memory.reward(episode, reward, solution=answer)
    seconds = time.perf_counter() - began
    if memory is not None:
        memory.close()
    fifths = [float(part.mean()) for part in np.array_split(success, 5)]
    return {
        **asdict(run),
        "simulated": True,
        "n": n,
        "success": float(success.mean()),
        "fifths": fifths,
        "shown": float(shown.mean()),
        "fitting": float(fitting.sum() / max(1, shown.sum())),
        "ms_per_episode": 1000 * seconds / n,
        "curve": [round(float(part.mean()), 4) for part in np.array_split(success, 20)],
    }


def planned(options: argparse.Namespace) -> Iterator[Run]:
    """Yield the runs that were asked for."""
    for seed in range(options.seeds):
        for stream in options.streams:
            for method in options.methods or methods(options.part):
                if options.part == "main":
                    for misled in MISLED:
                        yield Run(options.part, stream, method, misled, seed, limit=options.limit)
                elif options.part in ("ablation", "rivals"):
                    yield Run(options.part, stream, method, 0.5, seed, limit=options.limit)
                else:
                    for adversity in ADVERSITIES:
                        yield Run(options.part, stream, method, 0.5, seed, adversity, limit=options.limit)


def key(row: dict[str, object]) -> tuple[object, ...]:
    """Return what identifies a row."""
    return tuple(row[name] for name in ("part", "stream", "method", "misled", "seed", "adversity", "limit"))


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["main", "ablation", "adversity", "rivals"], default="main")
    parser.add_argument("--streams", nargs="+", choices=list(FILES), default=list(FILES))
    parser.add_argument("--methods", nargs="+", default=None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=None, help="first tasks of each stream only: for trying out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("results/learning.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in options.out.open()] if options.out.exists() else []
    wanted = list(planned(options))
    done = {key(row) for row in rows}
    todo = [run for run in wanted if key(asdict(run)) not in done]
    if todo:
        load(todo[0].stream, 1)  # fail early, and once, where there is no data
        with ProcessPoolExecutor(options.jobs) as pool, options.out.open("a") as file:
            for finished in tqdm(as_completed([pool.submit(play, run) for run in todo]), total=len(todo), unit="run"):
                row = finished.result()
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
    mine = {key(asdict(run)) for run in wanted}
    report.show(options.part, [row for row in rows if key(row) in mine], options.out.with_suffix(""))


if __name__ == "__main__":
    main()
