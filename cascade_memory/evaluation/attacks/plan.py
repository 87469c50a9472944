"""The plan of the attacks: each kind (and no attack), share of malicious turns and stream, with all countermeasures and none.

For one share, each countermeasure is also left out in turn. The rival "similarity" is played without countermeasures only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cascade_memory.evaluation.attacks.play import KINDS, LAYERS
from cascade_memory.evaluation.bench.plan import PROCEDURES, Run

NAME = "attacks"
STREAMS = ("banking77", f"rca{PROCEDURES}")
SEEDS = 3
POISON = (0.01, 0.05, 0.1)
CLEAN = "clean"
ALL, NONE = "all", "none"
_OURS, _RIVAL = "CASCADE", "similarity"
_WITHOUT_ONE = 0.05  # the share of malicious turns with which each measure is left out in turn


def runs(tasks: Sequence[str] = STREAMS, seeds: int = SEEDS, limit: int | None = None) -> Iterator[Run]:
    """Yield the runs of the plan, seed by seed.

    >>> len(list(runs(seeds=1)))
    200
    """
    for seed in range(seeds):
        for task in tasks:
            for method, attack, layers in _conditions():
                yield Run(task, method, seed, limit, attack=attack, layers=layers)


def _conditions() -> Iterator[tuple[str, str, str]]:
    for poison in POISON:
        for kind in (CLEAN, *KINDS):
            attack = f"{kind}={poison:g}"
            yield from ((_OURS, attack, ALL), (_OURS, attack, NONE), (_RIVAL, attack, NONE))
    for kind in KINDS:
        for layers in LAYERS:
            if layers not in (ALL, NONE):
                yield _OURS, f"{kind}={_WITHOUT_ONE:g}", layers
