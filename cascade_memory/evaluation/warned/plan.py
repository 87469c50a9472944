"""The plan of the warnings: each arm on each stream, in the same orders of the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cascade_memory.evaluation.bench.plan import REUSED, Run

NAME = "warnings"
LIMITS = {"scienceworld": 80, "alfworld-30": 80, "spider": 600}  # tasks that are played of each stream
STREAMS = tuple(LIMITS)
ASIDE = tuple(f"{name}-aside" for name in STREAMS)  # tasks with which the agents are developed
SEEDS = 5


@dataclass(frozen=True, slots=True)
class Arm:
    """What becomes of failures: ``shown`` of them at the start, warnings at the action, or failures among the cases.

    ``remembered`` is the probability with which an agent still thinks of what it was told earlier in the task.
    """

    shown: int = 0
    at_the_action: bool = False
    among_cases: bool = False
    remembered: float = 1.0


NOTHING = "none"
ARMS: Mapping[str, Arm] = {
    NOTHING: Arm(),
    "at the start": Arm(shown=2),
    "at the start, 8": Arm(shown=8),
    "at the start, half remembered": Arm(shown=2, remembered=0.5),
    "at the action": Arm(at_the_action=True),
    "failures as examples": Arm(among_cases=True),
}


def runs(
    tasks: Sequence[str] = STREAMS, seeds: int = SEEDS, limit: int | None = None, arms: Sequence[str] = tuple(ARMS)
) -> Iterator[Run]:
    """Yield the runs seed by seed.

    >>> len(list(runs(seeds=1)))
    18
    """
    for seed in range(seeds):
        for task in tasks:
            name, solver = REUSED[task]
            for arm in arms:
                yield Run(name, arm, seed, limit or LIMITS[name], solver)
