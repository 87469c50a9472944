"""``cascade-memory demo``: compares no memory, similarity and CASCADE on the same stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cascade_memory.assembly.cascade import CascadeMemory
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.encoders.minilm import MiniLMEmbedder, is_installed
from cascade_memory.errors import MissingExtra
from cascade_memory.evaluation.solver import SimulatedSolver
from cascade_memory.evaluation.stream import PrecomputedEmbedder, play
from cascade_memory.evaluation.synthetic import tickets
from cascade_memory.insight.plot import running_mean
from cascade_memory.memory.memory import Memory

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
    embedder = MiniLMEmbedder() if is_installed() else HashingEmbedder()
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
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra('the plot needs the extra "plot": pip install "cascade-memory[plot]"') from error
    figure: Any = Figure(figsize=(8, 4), layout="constrained")
    axes: Any = figure.subplots()
    for (name, steps), colour in zip(result.successes.items(), ("C7", "C1", "C0"), strict=True):
        values = np.asarray(steps, np.float64)
        window = max(10, len(values) // 6)
        axes.plot(np.arange(1, len(values) + 1), running_mean(values, window), label=name, color=colour, linewidth=2)
    axes.set(xlabel="task", ylabel="success, running mean", ylim=(0, 1.02), title="Simulated solver, synthetic tickets")
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(target, dpi=120)
