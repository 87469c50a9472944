"""What do bare rewards depend on? Each part of the success process is taken out, and judged by the rewards that came.

    CASCADE_DATA=... python examples/benchmarks/rewarded_pairs.py                        # ScienceWorld and household games
    CASCADE_DATA=... python examples/benchmarks/rewarded_pairs.py --streams spider-aside --seeds 1

Whole streams are too noisy to choose a model by: two orders of one stream differ by several points of success. So this plays
the set-aside tasks in the untrained order, and logs which case was shown for which task, and how it ended. Then it computes the
evidence of the success process: the log probability that it gives to all these rewards. A part is worth having if the evidence
falls without it; a difference of 3 is a factor of 20. No stream is touched on which methods are compared.

The tasks are made on the first run, which takes minutes, and every play is kept in the folder ``--work``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tqdm import tqdm

from cascade_memory import CascadeMemory
from cascade_memory.assembly.rankers import START
from cascade_memory.bandit import success_process
from cascade_memory.bandit.similarity import FrozenHead
from cascade_memory.bandit.success_process import SuccessProcess
from cascade_memory.cli.bench_data import folder_of_data
from cascade_memory.encoders.light import FEATURES, LightEncoder
from cascade_memory.evaluation.bench.plan import REUSED, Run
from cascade_memory.evaluation.bench.stage import Folders
from cascade_memory.evaluation.bench.stages import prepare, stage_for
from cascade_memory.evaluation.stream import play
from cascade_memory.learning.ranker import Ranker
from cascade_memory.ports.policy import Feedback

STREAMS = ("scienceworld-aside", "alfworld-30-aside")
# What is changed in each row of the table: constants of the success process.
CHANGES: Mapping[str, Mapping[str, float]] = {
    "without signals": {"SIGNAL": 1e-9},
    "without families": {"FAMILY": 1e-9},
    "without tasks": {"TASK": 1e-9},
    "without any of them": {"SIGNAL": 1e-9, "FAMILY": 1e-9, "TASK": 1e-9},
    "twice the variance of families": {"FAMILY": 2 * success_process.FAMILY},
    "tasks alike only if they are closer": {"ALIKE": 8},
}


class Untrained(FrozenHead):
    """Keeps the starting order, and all outcomes."""

    def __init__(self) -> None:
        super().__init__(START)
        self.outcomes: list[Feedback] = []

    def update(self, feedback: Sequence[Feedback]) -> None:
        """Keep outcomes."""
        self.outcomes += feedback


class Unbounded(SuccessProcess):
    """Judges all rewards of a stream together, each by its full weight."""

    WINDOW = 1 << 16
    HALF = float("inf")


def outcomes_of(stream: str, seed: int, limit: int | None, folders: Folders) -> list[Feedback]:
    """Play a stream in the untrained order; return what was shown, and how it ended."""
    name, solver = REUSED[stream]
    run = Run(name, "CASCADE untrained", seed, limit, solver)
    prepare(run, folders)
    stage = stage_for(run, folders)
    policy = Untrained()
    ranker = Ranker(name="untrained", encoder=LightEncoder, policy=lambda: policy, features=FEATURES)
    try:
        with CascadeMemory(embedder=stage.embedder, ranker=ranker, learn="inline", deadline=None) as memory:
            for place, query in enumerate(tqdm(stage.queries, f"{stream}, order {seed}")):
                play(memory, query, stage.solver, place)
            failures = memory.health().failures
    finally:
        stage.close()
    if failures:
        raise RuntimeError(f"the memory failed while it played {stream}: {dict(failures)}")
    return policy.outcomes


def evidence(outcomes: Sequence[Feedback]) -> float:
    """Compute the log probability that the success process gives to the rewards, up to a constant."""
    process = Unbounded()
    for outcome in outcomes:
        if outcome.shown and len(outcome.chosen):
            features = np.asarray(outcome.slate.features, np.float64)
            process.note(outcome.slate, features, int(outcome.chosen[0]), outcome.reward, outcome.weight, START)
            if outcome.descent is not None:
                process.descends(*outcome.descent)
    process.fit()
    return 0.0 if process.fitted is None else process.fitted.evidence


@contextmanager
def changed(constants: Mapping[str, float]) -> Iterator[None]:
    """Change constants of the success process for a while, in this process only."""
    before = {name: getattr(success_process, name) for name in constants}
    vars(success_process).update(constants)
    try:
        yield
    finally:
        vars(success_process).update(before)


def table(played: Mapping[str, Sequence[Sequence[Feedback]]]) -> list[str]:
    """Return the lines of a Markdown table: what each change adds to the evidence, over all orders of a stream."""
    lines = [f"| | {' | '.join(played)} |", "|---" * (len(played) + 1) + "|"]
    as_is = {stream: sum(map(evidence, orders)) for stream, orders in played.items()}
    for change, constants in CHANGES.items():
        with changed(constants):
            gains = [sum(map(evidence, orders)) - as_is[stream] for stream, orders in played.items()]
        lines.append(f"| {change} | {' | '.join(f'{gain:+.1f}' for gain in gains)} |")
    return lines


def main() -> None:
    """Play the streams, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", default=STREAMS, choices=[name for name in REUSED if name.endswith("-aside")])
    parser.add_argument("--seeds", type=int, default=3, help="how many orders of each stream")
    parser.add_argument("--limit", type=int, help="only the first tasks of each stream")
    parser.add_argument("--data", type=Path, help="the folder with the streams (default: CASCADE_DATA)")
    parser.add_argument("--work", type=Path, default=Path("results/rewarded_pairs.work"), help="the folder for tasks and plays")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    folders = Folders(data=folder_of_data(given.data), work=given.work)
    played = {
        stream: [outcomes_of(stream, seed, given.limit, folders) for seed in range(given.seeds)] for stream in given.streams
    }
    print("\n".join(table(played)))


if __name__ == "__main__":
    main()
