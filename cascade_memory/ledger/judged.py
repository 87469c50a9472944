"""Settled episodes with how their first choice was made."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cascade_memory.ledger.compaction import NUMBERS, compacted_until
from cascade_memory.ledger.packing import unpack_floats
from cascade_memory.ledger.recalls import FEEDBACK_COLUMNS, feedback, opinion
from cascade_memory.ports.judged import Judged

_UTILITY, _PROPENSITY = 4, 5  # columns of RecallRecord.numbers
_LESSON = FEEDBACK_COLUMNS.count(",") + 1
_FIRST = "(SELECT min(key) FROM recall AS one WHERE one.episode = episode.key AND one.kind = 'recall')"
_SELECT = f"""SELECT {FEEDBACK_COLUMNS}, outcome.value, episode.arm, episode.holdout,
    (SELECT count(*) FROM recall AS one WHERE one.episode = episode.key AND one.kind = 'recall'),
    (SELECT max(shown AND length(chosen) > 0) FROM recall AS one WHERE one.episode = episode.key),
    recall.k, encoder, outcome.namespace, outcome.key, baseline, shadow, shadow_numbers
  FROM outcome JOIN episode ON episode.key = outcome.episode JOIN recall ON recall.key = {_FIRST}
  WHERE withdrawn_at IS NULL AND outcome.source <> 'agent' AND (?1 IS NULL OR outcome.namespace = ?1) ORDER BY outcome.key"""


def judged(connection: sqlite3.Connection, namespace: int | None) -> Iterator[Judged]:
    """Yield what somebody other than the agent has judged, oldest first; a proposal recalled nothing, and is left out."""
    kept: dict[int, int] = {}
    for row in connection.execute(_SELECT, (namespace,)):
        number = row[_LESSON + 7]
        if number not in kept:
            kept[number] = compacted_until(connection, number)
        yield _judged(row[:_LESSON], row[_LESSON:], kept[number])


def _judged(lesson: Sequence[Any], rest: Sequence[Any], compacted: int) -> Judged:
    reward, arm, holdout, recalls, showed, k, encoder, _, outcome, baseline, shadow, opinions = rest
    n = len(lesson[1]) // 8
    numbers = unpack_floats(lesson[4], NUMBERS) if n else np.zeros((0, NUMBERS), np.float32)
    places, propensity = opinion(opinions or b"", n if shadow is not None else 0)
    return Judged(
        lesson=feedback(lesson, reward, 1.0 / recalls),
        arm=arm,
        holdout=holdout,
        recalls=recalls,
        showed=bool(showed),
        k=abs(k),
        forgot=k < 0,
        encoder=encoder,
        whole=outcome > compacted,
        utility=numbers[:, _UTILITY],
        propensity=numbers[:, _PROPENSITY],
        baseline=math.nan if baseline is None else baseline,
        shadow=shadow,
        shadow_places=places,
        shadow_propensity=propensity,
    )


def arms(connection: sqlite3.Connection, namespace: int | None) -> dict[str, int]:
    """Return how many episodes each arm has, of those in which chance decided."""
    rows = connection.execute(
        "SELECT arm, count(*) FROM episode WHERE holdout > 0 AND (?1 IS NULL OR namespace = ?1) GROUP BY arm", (namespace,)
    )
    return dict(rows.fetchall())
