"""What do wrong cases cost, and how much of it is learned away? A share of the bank is poisoned; the solver is SIMULATED.

    CASCADE_DATA=... python examples/benchmarks/poison.py
    CASCADE_DATA=... python examples/benchmarks/poison.py --share 0.1 --streams rca --limit 1000

A wrong case is a task of the stream with a solution that is not its own, put in as a confirmed case. "At the start" they are
all there before the first task, a twentieth of the stream's length; "along the stream" one comes before every twentieth task,
drawn by the seed. Where it is put in, which tasks it names and what it says are the same for every method and version. Spider
is played by the agent that reuses queries; a wrong case there has the query of another question.

Rows go to ``results/poison.jsonl``; a row that is there already is not run again. ``--label`` names the version that is
measured, so that two of them can be compared: play one, check the other out, play that with another label.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
from report import interval

from cascade_memory.evaluation.bench.methods import open_memory
from cascade_memory.evaluation.bench.plan import Run as Played
from cascade_memory.evaluation.bench.stage import Folders, Stage, catalogued
from cascade_memory.evaluation.bench.stages import stage_for
from cascade_memory.evaluation.reuse.sql_agent import query_of
from cascade_memory.evaluation.stream import play

STREAMS = ("ddxplus", "rca", "sentifin", "banking77", "spider")
POISONED = ("never", "at the start", "along the stream")
METHODS = ("NP-CBR", "CASCADE", "CASCADE, always a case")


@dataclass(frozen=True, slots=True)
class Run:
    """What identifies a row."""

    label: str
    stream: str
    poisoned: str
    method: str
    share: float
    seed: int
    limit: int | None


def lies(run: Run, queries: list[str], solutions: list[str]) -> dict[int, tuple[str, str]]:
    """Return the wrong cases by the task before which they come: a task, and the solution of one that has another."""
    rng = np.random.default_rng([run.seed, 29])
    n = round(run.share * len(queries))
    found: dict[int, tuple[str, str]] = {}
    for i, place in enumerate(rng.choice(len(queries), n, replace=False)):
        other = next(one for one in rng.permutation(len(queries)) if solutions[one] != solutions[place])
        found[i * len(queries) // n] = (queries[place], solutions[other])
    return found


def truths(stage: Stage, data: Path) -> list[str]:
    """Return the right solutions; of Spider, whose stage keeps them to itself, the queries of the data."""
    if stage.solutions is not None:
        return list(stage.solutions)
    known = {query_of(item): item.solution for item in catalogued("spider").items(data)}
    return [known[query] for query in stage.queries]


def played(run: Run, folders: Folders) -> float:
    """Return the share of the tasks that was solved."""
    solver = "reuse" if run.stream == "spider" else "simulated"
    stage = stage_for(Played(run.stream, run.method, run.seed, run.limit, solver), folders)
    memory = open_memory(run.method, stage.embedder)
    assert memory is not None
    wrong = lies(run, list(stage.queries), truths(stage, folders.data)) if run.poisoned != "never" else {}
    solved = 0
    try:
        if run.poisoned == "at the start":
            memory.add(list(wrong.values()))
            wrong = {}
        for place, query in enumerate(stage.queries):
            if place in wrong:
                memory.add(*wrong[place])
            solved += play(memory, query, stage.solver, place).attempt.success
    finally:
        memory.close()
        stage.close()
    return solved / len(stage.queries)


def runs(options: argparse.Namespace) -> Iterator[Run]:
    """Yield them, seed by seed: whoever stops early has everything on some seeds."""
    for seed in range(options.seeds):
        for stream, poisoned, method in product(options.streams, options.poisoned, options.methods):
            yield Run(options.label, stream, poisoned, method, options.share, seed, options.limit)


def main() -> None:
    """Play what is missing, then print a table for every label that has rows."""
    parser = argparse.ArgumentParser(description="Success with a share of wrong cases in the bank (SIMULATED).")
    parser.add_argument("--streams", nargs="+", default=STREAMS, choices=STREAMS)
    parser.add_argument("--poisoned", nargs="+", default=POISONED, choices=POISONED)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=int, help="the first tasks of each stream only")
    parser.add_argument("--label", default="now")
    parser.add_argument("--out", type=Path, default=Path("results/poison.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rates: dict[Run, float] = {}
    if options.out.exists():
        for line in options.out.read_text().splitlines():
            row = json.loads(line)
            rates[Run(**{name: row[name] for name in Run.__slots__})] = row["rate"]
    folders = Folders(Path(os.environ["CASCADE_DATA"]), options.out.parent)
    for run in runs(options):
        if run not in rates:
            rates[run] = played(run, folders)
            with options.out.open("a") as file:
                file.write(json.dumps({**asdict(run), "rate": rates[run]}) + "\n")
    show(options, rates)


def show(options: argparse.Namespace, rates: dict[Run, float]) -> None:
    """Print success in percent by label, method and stream; in brackets what poison costs, paired, with its 95 % interval."""
    for label in dict.fromkeys(run.label for run in rates):
        print(f"\n{label}: SIMULATED, {100 * options.share:g} % wrong cases, {options.seeds} orders\n")
        print("| | " + " | ".join(options.streams) + " |")
        print("|---" * (1 + len(options.streams)) + "|")
        for method, poisoned in product(options.methods, options.poisoned):
            cells: list[str] = []
            for stream in options.streams:
                wanted = [
                    [Run(label, stream, how, method, options.share, seed, options.limit) for seed in range(options.seeds)]
                    for how in (poisoned, "never")
                ]
                if any(run not in rates for of_one in wanted for run in of_one):
                    cells.append("–")
                    continue
                with_lies, without = (100 * np.array([rates[run] for run in of_one]) for of_one in wanted)
                cost = "" if poisoned == "never" else " ({:+.1f} ± {:.1f})".format(*interval(with_lies - without))
                cells.append(f"{with_lies.mean():.1f}{cost}")
            print(f"| {method}, poisoned {poisoned} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
