"""``cascade-memory bench demo``: compares no memory, similarity and CASCADE on the same stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cascade_memory import CascadeMemory
from cascade_memory.encoders import HashingEmbedder, default_embedder, is_installed
from cascade_memory.evaluation.solver import SimulatedSolver
from cascade_memory.evaluation.stream import PrecomputedEmbedder, play
from cascade_memory.evaluation.synthetic import tickets
from cascade_memory.looks import Curve, Panel, figure_of, looks, moving_mean, window_for
from cascade_memory.memory import Memory

ZERO_SHOT, MISLED = 0.45, 0.5
CONTENDERS = ("no memory", "similarity", "CASCADE")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The success of each contender on each task."""

    successes: dict[str, list[bool]]
    embedder: str

    def rates(self) -> dict[str, tuple[float, float]]:
        """Compute for each contender its success rate over all tasks and over the last fifth."""
        return {
            name: (float(np.mean(steps)), float(np.mean(steps[-max(1, len(steps) // 5) :])))
            for name, steps in self.successes.items()
        }


def run_demo(n: int, seed: int, report: Callable[[int, dict[str, list[bool]]], None]) -> DemoResult:
    """Play the stream; ``report`` is called after every task with the successes so far."""
    stream = tickets(n, seed)
    embedder = default_embedder() if is_installed() else HashingEmbedder()
    known = PrecomputedEmbedder(embedder, [task.query for task in stream])
    solver = SimulatedSolver([task.solution for task in stream], zero_shot=ZERO_SHOT, misled=MISLED, seed=seed)
    memories: dict[str, Memory | None] = {
        "no memory": None,
        "similarity": CascadeMemory(embedder=known, ranker="similarity", learn="inline"),
        "CASCADE": CascadeMemory(embedder=known, learn="inline"),
    }
    successes: dict[str, list[bool]] = {name: [] for name in CONTENDERS}
    for i, task in enumerate(stream):
        for name, memory in memories.items():
            successes[name].append(play(memory, task.query, solver, i).attempt.success)
        report(i + 1, successes)
    for memory in memories.values():
        if memory is not None:
            memory.close()
    return DemoResult(successes=successes, embedder=embedder.identity)


def plot_demo(result: DemoResult, target: Path) -> None:
    """Plot success over tasks into a file."""
    look = looks(CONTENDERS)
    curves: list[Curve] = []
    for name, steps in result.successes.items():
        window = window_for(max(10, len(steps) // 6), len(steps))
        means = moving_mean([float(one) for one in steps], window)
        curves.append(Curve(name, [(float(place), mean) for place, mean in enumerate(means, window)], look[name]))
    ends = ", ".join(f"{curve.name} {100 * curve.points[-1][1]:.0f} %" for curve in curves)
    panel = Panel("Success on synthetic tickets, SIMULATED solver", "task", curves, f"At the end: {ends}.", shares=True)
    figure_of([panel], "the plot", width=5.6).savefig(target, dpi=150)
