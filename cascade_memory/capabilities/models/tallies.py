"""Counts by model what came of the judged episodes, with and without a case shown, and the stored cases."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cascade_memory.bandit import intervals
from cascade_memory.bandit.intervals import Interval
from cascade_memory.domain.display import counted, number
from cascade_memory.ledger import Connection
from cascade_memory.ledger.rows import metadata_if_readable
from cascade_memory.visible import shown_visibly

MODEL = "model"  # the name of the field of metadata
_LIKE = f'%"{MODEL}"%'
_JUDGED = """SELECT metadata, value, (SELECT max(CASE WHEN shown = 1 AND length(chosen) > 0 THEN 1 ELSE 0 END)
                                      FROM recall WHERE recall.episode = outcome.episode)
               FROM outcome WHERE withdrawn_at IS NULL AND source <> 'agent' AND metadata LIKE ?"""
_CASES = "SELECT metadata FROM cases JOIN case_text USING (key) WHERE metadata LIKE ?"


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTally:
    """What came of the episodes that a model has answered, and that somebody other than its agent has judged.

    ``with_case`` and ``without`` are the mean rewards of the episodes in which a case was shown, and of the others; None if
    there was no such episode. They are no experiment: whether a case is shown depends on the task.
    """

    model: str
    episodes: int
    shown: int  # of these episodes, those in which a case was shown
    with_case: Interval | None
    without: Interval | None
    cases: int  # that are stored, and were made by it


def tallies(tx: Connection, namespace: int | None) -> list[ModelTally]:
    """Return the tally of each model of a namespace, or of all; the models with the most episodes first."""
    one, values = ("", ()) if namespace is None else (" AND namespace = ?", (namespace,))
    rewards: defaultdict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for metadata, value, shown in tx.execute(_JUDGED + one, (_LIKE, *values)):
        for model in _model_in(metadata):
            rewards[model][bool(shown)].append(float(value))
    cases = Counter(model for (metadata,) in tx.execute(_CASES + one, (_LIKE, *values)) for model in _model_in(metadata))
    found: list[ModelTally] = []
    for model in {**rewards, **cases}:
        without, with_case = rewards[model]
        found.append(
            ModelTally(
                model=model,
                episodes=len(without) + len(with_case),
                shown=len(with_case),
                with_case=_mean(with_case),
                without=_mean(without),
                cases=cases[model],
            )
        )
    return sorted(found, key=lambda one: (-one.episodes, -one.cases, one.model))


def line_of(one: ModelTally) -> str:
    """Return the line of a model in the report.

    >>> line_of(ModelTally(model="gpt-5.2", episodes=1, shown=1, with_case=_mean([1.0]), without=None, cases=3))
    'gpt-5.2: 1 episode; with a case 1.000 (0.207 to 1.000), without –; 3 cases'
    """
    said = f"with a case {_level(one.with_case)}, without {_level(one.without)}"
    return f"{one.model}: {counted(one.episodes, 'episode')}; {said}; {counted(one.cases, 'case')}"


def _model_in(metadata: str | None) -> Iterator[str]:
    found = metadata_if_readable(metadata).get(MODEL)
    if isinstance(found, str) and found:
        yield found


def _mean(rewards: list[float]) -> Interval | None:
    return intervals.mean(np.array(rewards)) if rewards else None


def _level(value: Interval | None) -> str:
    return "–" if value is None else f"{number(value.estimate)} ({number(value.low)} to {number(value.high)})"
