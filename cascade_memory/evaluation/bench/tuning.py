"""The paper's tuning: first the learning rate without exploration, then alpha with that learning rate; and its cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.names import TUNABLE
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
    """The trials, the best parameters, and the cost of a tuning."""

    trials: list[Trial]
    winner: Trial

    @property
    def episodes(self) -> int:
        """Count the tasks that were played."""
        return sum(row["n"] for _, rows in self.trials for row in rows)

    @property
    def seconds(self) -> float:
        """Add up the times of all runs, without embedding, which all runs of a task share."""
        return sum(row["seconds"] for _, rows in self.trials for row in rows)


def tune(
    wanted: Run, seeds: int, play_all: Callable[[Sequence[Run]], list[Row]], grids: dict[str, Sequence[float]] | None = None
) -> Tuning:
    """Choose the parameters of ``wanted.method`` one after the other; parameters that are not chosen yet are zero.

    Other parameters, such as k, stay as ``wanted.options`` says. ``grids`` has the values to try for each parameter. Of equally
    good values, the first one is chosen. ``play_all`` is a function that plays those of the given runs that have no row yet,
    and returns the rows of all of them.
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
        stage = [(one, [row for row in rows if json.loads(row["options"]).items() >= one.items()]) for one in candidates]
        trials.update({canonical(one): (one, its) for one, its in stage})
        winner = max(stage, key=rate)
    return Tuning(trials=list(trials.values()), winner=winner)


def rate(trial: Trial) -> float:
    """Compute the share of tasks that were solved with the parameters of a trial, as the mean over seeds."""
    return float(np.mean([row["rate"] for row in trial[1]]))


def _run(wanted: Run, parameters: Parameters, seed: int) -> Run:
    return replace(wanted, seed=seed, options=canonical({**json.loads(wanted.options or "{}"), **parameters}))


def canonical(parameters: Parameters) -> str:
    """Convert parameters to the JSON text that identifies a row.

    >>> canonical({"learning_rate": 1e-05, "alpha": 0})
    '{"alpha": 0.0, "learning_rate": 1e-05}'
    """
    return json.dumps({name: float(value) for name, value in parameters.items()}, sort_keys=True)
