"""Does a full memory remove the right cases? The library's eviction against no limit, first in, first out, and random.

    CASCADE_DATA=... python examples/benchmarks/eviction.py
    CASCADE_DATA=... python examples/benchmarks/eviction.py --adversities flipped drift
    CASCADE_DATA=... python examples/benchmarks/eviction.py --streams rca sentifin --max-cases 300 --seeds 3

A run plays a stream twice, and the second pass has another order. Banking77 has 5,000 tasks, so a run has 10,000 episodes. In
the second pass every query was seen before, which favours the memory without a limit. So the first pass is also reported alone.
The solver is SIMULATED and draws at random in every episode. The seed decides the order of both passes and the solver's draws.

The rivals differ from the library only in which cases they remove; they remove as many, at the same times. They replace the
library's own function only in the process of this benchmark. Under "flipped" a fifth of the rewards says the opposite. Under
"drift" the labels come in four groups, one after the other, in both passes.

Rows go to ``results/eviction.jsonl``. A run that has a row there is not played again (delete the file to start over).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from cascade_memory import CascadeMemory, Retention
from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.domain.records import CaseRecords
from cascade_memory.engine import namespace_state as state
from cascade_memory.evaluation.bench.conditions import REWARDS, Rewards
from cascade_memory.evaluation.bench.plan import ALONE, MISLED
from cascade_memory.evaluation.bench.rows import Row
from cascade_memory.evaluation.bench.stage import catalogued, embedded
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.stream import SimulatedSolver
from cascade_memory.evaluation.stream import play as play_task
from cascade_memory.looks.figure import End, EndNames, new_figure, saved, styled
from cascade_memory.looks.palette import looks

STREAMS = ("banking77", "ddxplus", "rca", "sentifin")
GROUPS = 4  # groups of labels, under drift
SLACK = 0.05  # the share of the limit that is removed at once, as in the library
UNBOUNDED, WORTH, FIFO, RANDOM = ARMS = ("unbounded", "worth", "first in, first out", "random")
PARTS = ("success", "first pass", "last fifth")
ADVERSITIES = ("plain", "flipped", "drift")


@dataclass(frozen=True, slots=True)
class Run:
    """The fields that identify a row. ``max_cases`` is None for the memory without a limit."""

    stream: str
    adversity: str
    arm: str
    max_cases: int | None
    seed: int
    limit: int | None


@contextmanager
def evicting(arm: str, seed: int) -> Iterator[None]:
    """Let a rival decide which cases are removed: within the block, and in this process only."""
    rng = np.random.default_rng([seed, 13])
    # (all keys, oldest first; the number to remove) -> the keys to remove
    rivals: dict[str, Callable[[NDArray[np.int64], int], NDArray[np.int64]]] = {
        FIFO: lambda keys, count: keys[:count],
        RANDOM: lambda keys, count: rng.choice(keys, count, replace=False),
    }
    original = state.surplus

    def rival(records: CaseRecords, *, max_cases: int, **_: object) -> list[int]:
        over = len(records) - max_cases
        return sorted(rivals[arm](records.keys, over + int(SLACK * max_cases)).tolist()) if over > 0 else []

    if arm in rivals:
        state.surplus = rival
    try:
        yield
    finally:
        state.surplus = original


def twice(labels: list[str], seed: int, *, drift: bool) -> NDArray[np.int64]:
    """Return two passes over the tasks, each in its own random order; under drift, one group of labels after the other."""
    rng = np.random.default_rng([seed, 7])
    passes = [rng.permutation(len(labels)) for _ in range(2)]
    if drift:
        distinct = sorted(set(labels))
        place = dict(zip(distinct, rng.permutation(len(distinct)) * GROUPS // len(distinct), strict=True))
        group = np.array([place[label] for label in labels])
        passes = [order[np.argsort(group[order], kind="stable")] for order in passes]
    return np.concatenate(passes)


def play(run: Run) -> Row:
    """Play one stream twice and return its row."""
    items, embedder = embedded(catalogued(run.stream), run.limit, folder_of_data(None))
    order = twice([item.solution for item in items], run.seed, drift=run.adversity == "drift")
    solver = SimulatedSolver([items[i].solution for i in order], zero_shot=ALONE[run.stream], misled=MISLED, seed=run.seed)
    n = len(order)
    rewards = Rewards(f"flipped={REWARDS['flipped']}" if run.adversity == "flipped" else "", n, run.seed)
    success, shown, fitting = np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, bool)
    with (
        evicting(run.arm, run.seed),
        CascadeMemory(embedder=embedder, learn="inline", retention=Retention(max_cases=run.max_cases)) as memory,
    ):
        began = time.perf_counter()
        for i, task in enumerate(order):
            step = play_task(memory, items[task].query, solver, i, rewards)
            success[i], shown[i], fitting[i] = step.attempt.success, step.shown, bool(step.attempt.fitting)
        seconds = time.perf_counter() - began
        health, cases = memory.health(), memory.stats().cases
    if not health.ok:
        raise RuntimeError(f"{run}: {health.failures}")  # the memory would go on without evicting; only ``health()`` says so
    return {
        **asdict(run),
        "simulated": True,
        "n": n,
        "success": float(success.mean()),
        "first pass": float(success[: n // 2].mean()),
        "last fifth": float(np.array_split(success, 5)[-1].mean()),
        "alone": float(np.mean([solver.solve(i, None).success for i in range(n)])),
        "shown": float(shown.mean()),
        "fitting": float(fitting.sum() / max(1, shown.sum())),
        "cases": int(cases),
        "ms_per_episode": 1000 * seconds / n,
        "curve": [round(float(part.mean()), 4) for part in np.array_split(success, 40)],
    }


def planned(options: argparse.Namespace) -> Iterator[Run]:
    """Yield the runs that were asked for."""
    for seed, stream, adversity, arm in product(range(options.seeds), options.streams, options.adversities, ARMS):
        yield Run(stream, adversity, arm, None if arm == UNBOUNDED else options.max_cases, seed, options.limit)


def identity(row: Row) -> Run:
    """Return the run that a row belongs to."""
    return Run(*(row[name] for name in Run.__slots__))


class Group:
    """The rows of one stream under one adversity, in order of seed: one value per seed, in percent."""

    def __init__(self, rows: list[Row]) -> None:
        self.of: dict[str, list[Row]] = {arm: [row for row in rows if row["arm"] == arm] for arm in ARMS}

    def values(self, arm: str, what: str) -> NDArray[np.float64]:
        return 100 * np.array([row[what] for row in self.of[arm]])

    def cells(self, arm: str) -> list[str]:
        """Return the cells of one line: success, and how much that is of the success without a limit."""
        whole, alone = self.values(UNBOUNDED, "success"), self.values(UNBOUNDED, "alone")
        parts = {what: self.values(arm, what) for what in PARTS}
        kept = interval(100 * parts["success"] / whole)
        first = 100 * parts["first pass"] / self.values(UNBOUNDED, "first pass")
        gain = 100 * (parts["success"] - alone).mean() / (whole - alone).mean()
        ms, cases = (np.mean([row[what] for row in self.of[arm]]) for what in ("ms_per_episode", "cases"))
        shares = [f"{kept[0]:.1f} ± {kept[1]:.1f}", f"{first.mean():.1f}", f"{gain:.0f}"]
        return [*(f"{values.mean():.2f}" for values in parts.values()), *shares, f"{cases:.0f}", f"{ms:.2f}"]

    def difference(self, rival: str, what: str) -> str:
        gain, half = interval(self.values(WORTH, what) - self.values(rival, what))
        return f"{gain:+.2f} ± {half:.2f}"


def show(rows: list[Row], max_cases: int, target: Path) -> None:
    """Print the tables, and draw the success over the episodes."""
    keys = list(dict.fromkeys((row["stream"], row["adversity"]) for row in rows))
    groups = {key: Group([row for row in rows if (row["stream"], row["adversity"]) == key]) for key in keys}
    seeds = len({row["seed"] for row in rows})
    print(f"\nSIMULATED solver, m = {MISLED}, all-MiniLM-L6-v2, at most {max_cases} cases, {seeds} seeds. Success in percent.")
    print("Each stream is played twice: the second pass meets queries that were seen, which favours the unbounded memory.")
    print("Kept: share of the unbounded success; gain kept: the same above what the solver gets right alone.\n")
    heads = ["stream", "eviction", "success", "first pass", "last fifth", "kept, %", "kept, first pass", "gain kept, %"]
    print("| " + " | ".join([*heads, "cases at the end", "ms/episode"]) + " |\n" + "|---" * 10 + "|")
    for (stream, adversity), group in groups.items():
        for arm in ARMS:
            print("| " + " | ".join([f"{stream}, {adversity}", arm, *group.cells(arm)]) + " |")
    print("\nWorth minus its rival, points of success, paired by seed, with 95 % intervals:\n")
    print("| stream | rival | all | first pass | last fifth |\n" + "|---" * 5 + "|")
    for (stream, adversity), group in groups.items():
        for rival in (FIFO, RANDOM):
            cells = [group.difference(rival, what) for what in PARTS]
            print("| " + " | ".join([f"{stream}, {adversity}", rival, *cells]) + " |")
    curves(groups, target)


def curves(groups: dict[tuple[str, str], Group], target: Path) -> None:
    """Draw the success over the episodes. The arms are all CASCADE, so each but the default has a spare colour."""
    look = {**looks(ARMS), WORTH: looks(["CASCADE"])["CASCADE"]}
    names = []
    with styled(10):
        figure = new_figure(4.6 * len(groups), 3.4)
        axes: Any = np.atleast_1d(figure.subplots(1, len(groups)))
        for axis, ((stream, adversity), group) in zip(axes, groups.items(), strict=True):
            ends = []
            for arm in ARMS:
                lines, colour = group.values(arm, "curve"), look[arm].colour
                steps = (np.arange(lines.shape[1]) + 0.5) / lines.shape[1] * group.of[arm][0]["n"]
                mean, spread = lines.mean(axis=0), lines.std(axis=0)
                axis.plot(steps, mean, color=colour, linestyle=look[arm].dash)
                for edge in (mean - spread, mean + spread):
                    axis.plot(steps, edge, color=colour, linewidth=0.5, alpha=0.6)
                ends.append(End(arm, mean[-1], colour))
            axis.set(title=f"{stream}, {adversity}", xlabel="episode (the second half repeats the tasks)")
            names.append(EndNames(axis, ends, 9))
        axes[0].set(ylabel="success, % (simulated solver)")
        saved(figure, names, target, dpi=130)
    print(f"\ncurves: {target}")


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=["banking77"])
    parser.add_argument("--adversities", nargs="+", choices=ADVERSITIES, default=["plain"])
    parser.add_argument("--max-cases", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=None, help="number of tasks of each stream; all if not given")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/eviction.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in options.out.open()] if options.out.exists() else []
    wanted = list(planned(options))
    if todo := sorted(set(wanted) - {identity(row) for row in rows}, key=wanted.index):
        folder_of_data(None)  # fail early, and only once, if there is no data
        with ProcessPoolExecutor(options.jobs) as pool, options.out.open("a", encoding="utf-8") as file:
            for finished in tqdm(as_completed([pool.submit(play, run) for run in todo]), total=len(todo), unit="run"):
                rows.append(finished.result())
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
    found = {identity(row): row for row in rows}
    show([found[run] for run in wanted], options.max_cases, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
