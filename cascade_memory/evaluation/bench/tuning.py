"""The paper's tuning: the learning rate without exploration first, then alpha with the chosen one; and what that costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.methods import TUNABLE
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.rows import Row

GRIDS = {
    "learning_rate": (1e-6, 3e-6, 1e-5, 2e-5),
    "alpha": tuple(round(0.1 * step, 1) for step in range(1, 11)),
}
Parameters = dict[str, float]
Trial = tuple[Parameters, list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What was tried, what came out best, and what it cost."""

    trials: list[Trial]
    winner: Trial

    @property
    def episodes(self) -> int:
        """Return how many tasks were played."""
        return sum(row["n"] for _, rows in self.trials for row in rows)

    @property
    def seconds(self) -> float:
        """Return how long that took, one after the other; without embedding, which every run of a task shares."""
        return sum(row["seconds"] for _, rows in self.trials for row in rows)


def tune(
    wanted: Run, seeds: int, play_all: Callable[[Sequence[Run]], list[Row]], grids: dict[str, Sequence[float]] | None = None
) -> Tuning:
    """Choose the parameters of ``wanted.method`` one after the other; those that come later are zero meanwhile.

    ``play_all`` plays the runs that have no row yet, and returns the rows of all of them. Of equally good values the first
    one wins.
    """
    if wanted.method not in TUNABLE:
        raise InvalidInput(f"{wanted.method!r} has nothing to tune; these have: {', '.join(TUNABLE)}")
    if seeds < 1:
        raise InvalidInput("at least one seed is needed")
    names, grids = TUNABLE[wanted.method], {**GRIDS, **(grids or {})}
    trials: dict[str, Trial] = {}
    winner: Trial = (dict.fromkeys(names, 0.0), [])
    for name in names:
        candidates = [{**winner[0], name: value} for value in grids[name]]
        rows = play_all([_run(wanted, one, seed) for one in candidates for seed in range(seeds)])
        stage = [(one, [row for row in rows if row["options"] == canonical(one)]) for one in candidates]
        trials.update({canonical(one): (one, its) for one, its in stage})
        winner = max(stage, key=rate)
    return Tuning(trials=list(trials.values()), winner=winner)


def rate(trial: Trial) -> float:
    """Return which part of the tasks was solved, the mean over seeds."""
    return float(np.mean([row["rate"] for row in trial[1]]))


def _run(wanted: Run, parameters: Parameters, seed: int) -> Run:
    return Run(wanted.task, wanted.method, seed, wanted.limit, wanted.solver, canonical(parameters))


def canonical(parameters: Parameters) -> str:
    """Return the one text of parameters that identifies a row.

    >>> canonical({"learning_rate": 1e-05, "alpha": 0})
    '{"alpha": 0.0, "learning_rate": 1e-05}'
    """
    return json.dumps({name: float(value) for name, value in parameters.items()}, sort_keys=True)
