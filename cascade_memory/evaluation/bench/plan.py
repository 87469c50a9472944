"""What is run: which streams, methods and seeds, with which declared solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cascade_memory.evaluation.bench.methods import METHODS, QUICK

MATCHED, MISLED = 0.97, 0.5

# The SIMULATED solver, fixed before any run: how often it succeeds alone. Those are the zero-shot rates of a 32B model in the
# paper; for a stand-in, those of the task that it stands for. Shown the right solution it succeeds with MATCHED; shown another
# one, MISLED of what it would have got right is spoiled.
ALONE = {"banking77": 0.667, "ddxplus": 0.638, "sentifin": 0.343, "rca": 0.454, "lfd": 0.5}

ALONE_REUSE = 0.2  # what a reuse agent solves without a case, with a solution that is known

# Streams that are not solved by the simulated solver: the task, and who solves it. "reuse-map" is the weaker agent.
REUSED = {
    "scienceworld": ("scienceworld", "reuse"),
    "scienceworld-map": ("scienceworld", "reuse-map"),
    "alfworld-20": ("alfworld-20", "reuse"),
    "alfworld-30": ("alfworld-30", "reuse"),
    "spider": ("spider", "reuse"),
    "spider-map": ("spider", "reuse-map"),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One method on one stream in one order: what identifies a row."""

    task: str
    method: str
    seed: int
    limit: int | None = None
    solver: str = "simulated"
    options: str = ""  # parameters of the method, as JSON with sorted keys; its own where empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Runs that belong together. ``tasks`` are names of the catalogue, for the simulated solver, or of ``REUSED``."""

    tasks: Sequence[str]
    methods: Sequence[str]
    seeds: int
    limit: int | None = None

    def runs(self) -> Iterator[Run]:
        """Yield them, seed by seed: whoever stops early has all methods on some seeds.

        >>> len(list(Suite(tasks=["rca"], methods=["zero-shot", "CASCADE"], seeds=3).runs()))
        6
        """
        for seed in range(self.seeds):
            for task in self.tasks:
                for method in self.methods:
                    name, solver = REUSED.get(task, (task, "simulated"))
                    yield Run(name, method, seed, self.limit, solver)


SUITES = {
    "quick": Suite(tasks=("banking77", "ddxplus", "rca", "sentifin"), methods=QUICK, seeds=3, limit=400),
    "local": Suite(tasks=(*ALONE, *REUSED), methods=tuple(METHODS), seeds=5),
}
