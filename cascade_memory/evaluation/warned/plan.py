"""The plan of the benchmark of warnings: each arm on each stream, in the same orders of the tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.plan import REUSED, Run
from cascade_memory.evaluation.warned.listening import LAST_RESORT, NEVER

NAME = "warnings"
LIMITS = {"scienceworld": 320, "alfworld-30": 264, "spider": 600}  # tasks that are played of each stream
STREAMS = tuple(LIMITS)
ASIDE = tuple(f"{name}-aside" for name in STREAMS)  # tasks with which the agents are developed
SEEDS = 5


@dataclass(frozen=True, slots=True)
class Arm:
    """A way to use failures: ``shown`` warnings at the start, warnings at the action, or failures among the cases.

    ``remembered`` is the probability with which an agent still remembers what it was told earlier in the task.
    """

    shown: int = 0
    at_the_action: bool = False
    among_cases: bool = False
    remembered: float = 1.0


NOTHING = "none"
HEEDS = (NEVER, LAST_RESORT)  # how an agent heeds what it was told, the same in every arm of a run
ARMS: Mapping[str, Arm] = {
    NOTHING: Arm(),
    "at the start": Arm(shown=2),
    "at the start, 8": Arm(shown=8),
    "at the start, half remembered": Arm(shown=2, remembered=0.5),
    "at the action": Arm(at_the_action=True),
    "failures as examples": Arm(among_cases=True),
}


def runs(
    tasks: Sequence[str] = STREAMS,
    seeds: int = SEEDS,
    limit: int | None = None,
    arms: Sequence[str] = tuple(ARMS),
    heeds: Sequence[str] = (NEVER,),
) -> Iterator[Run]:
    """Yield the runs seed by seed, with agents that treat warnings in each of the ways ``heeds`` (some of ``HEEDS``).

    >>> len(list(runs(seeds=1)))
    18
    """
    heard = {NEVER: "", LAST_RESORT: json.dumps({"heeds": LAST_RESORT})}
    for seed in range(seeds):
        for task in tasks:
            name, solver = REUSED[task]
            for how in heeds:
                for arm in arms:
                    yield Run(name, arm, seed, limit or LIMITS[name], solver, heard[how])


def heeds_of(options: str) -> str:
    """Return how the agent of a run treats warnings: one of ``HEEDS`` (see ``warned.listening``).

    >>> heeds_of(""), heeds_of('{"heeds": "last resort"}')
    ('never', 'last resort')
    """
    how = json.loads(options or "{}").get("heeds", NEVER)
    if how not in HEEDS:
        raise InvalidInput(f"there is no way of heeding {how!r}; there are {', '.join(HEEDS)}")
    return how
