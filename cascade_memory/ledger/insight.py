"""The part of the ledger with statistics about its content and the outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import numpy as np

from cascade_memory.domain.records import Column, Unkept
from cascade_memory.ledger.compaction import NUMBERS, compacted_until
from cascade_memory.ledger.database import Database
from cascade_memory.ledger.lessons import FEEDBACK_COLUMNS, feedback, opinion
from cascade_memory.ledger.rows import given, unpack_floats
from cascade_memory.ports.policy import Judged

_LESSON = FEEDBACK_COLUMNS.count(",") + 1
_FIRST = "(SELECT min(key) FROM recall AS one WHERE one.episode = episode.key AND one.kind = 'recall')"
_SHOWN = "max(CASE WHEN shown = 1 AND length(chosen) > 0 THEN 1 ELSE 0 END)"
_SELECT = f"""SELECT {FEEDBACK_COLUMNS}, outcome.value, episode.arm, episode.holdout,
    (SELECT count(*) FROM recall AS one WHERE one.episode = episode.key AND one.kind = 'recall'),
    (SELECT {_SHOWN} FROM recall AS one WHERE one.episode = episode.key),
    recall.k, forgot, encoder, outcome.namespace, outcome.key, baseline, shadow, shadow_numbers
  FROM outcome JOIN episode ON episode.key = outcome.episode JOIN recall ON recall.key = {_FIRST}
  WHERE withdrawn_at IS NULL AND outcome.source <> 'agent'"""


class SQLInsight:
    """Reads statistics about the content and the outcomes; writes nothing."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def counts(self, namespace: int | None) -> dict[str, float]:
        """Return counts by name.

        The names are ``cases``, ``copies``, ``solutions``, ``recalls``, ``shown``, ``episodes`` and each of their statuses,
        ``reported`` (the settled ones that only their agent has judged), ``rewards``, ``mean_reward``, and ``unkept_...`` for
        each reason why an outcome stored no case.
        """
        with self._connections.read() as connection:
            found: dict[str, float] = {}
            where, values = ("WHERE namespace = ?", (namespace,)) if namespace is not None else ("", ())
            found["cases"], found["copies"], found["solutions"] = connection.execute(
                f"SELECT count(*), coalesce(sum(copies), 0), count(DISTINCT solution) FROM cases {where}", values
            ).fetchone()
            found["recalls"], shown = connection.execute(
                f"SELECT count(*), coalesce(sum(shown), 0) FROM recall {where}", values
            ).fetchone()
            found["shown"] = shown
            for status in ("open", "settled", "censored", "expired"):
                found[status] = 0
            found.update(connection.execute(f"SELECT status, count(*) FROM episode {where} GROUP BY status", values).fetchall())
            found["episodes"] = sum(found[status] for status in ("open", "settled", "censored", "expired"))
            reported = f"{where} {'AND' if where else 'WHERE'} status = 'settled' AND source = 'agent'"
            (found["reported"],) = connection.execute(f"SELECT count(*) FROM episode {reported}", values).fetchone()
            current = f"{where} {'AND' if where else 'WHERE'} withdrawn_at IS NULL"
            judged = (
                "CASE WHEN source <> 'agent' OR learns = 1 THEN value END"  # what agents say of themselves is no reward yet
            )
            found["rewards"], found["mean_reward"] = connection.execute(
                f"SELECT count(*), coalesce(avg({judged}), 0) FROM outcome {current}", values
            ).fetchone()
            found.update({f"unkept_{why}": 0 for why in get_args(Unkept)})
            unkept = f"SELECT 'unkept_' || unkept, count(*) FROM outcome {current} AND unkept IS NOT NULL GROUP BY unkept"
            found.update(connection.execute(unkept, values).fetchall())
            return found

    def recalls(self, namespace: int) -> int:
        """Return the number of recalls."""
        with self._connections.read() as connection:
            return int(connection.execute("SELECT count(*) FROM recall WHERE namespace = ?", (namespace,)).fetchone()[0])

    def rewards(self, namespace: int | None) -> list[tuple[float, bool]]:
        """Return (value, whether a case was shown) for every current outcome, oldest first."""
        where, values = given({"namespace": namespace})
        with self._connections.read() as connection:
            rows = connection.execute(
                f"""SELECT outcome.value, (SELECT coalesce({_SHOWN}, 0) FROM recall
                                          WHERE recall.episode = outcome.episode)
                   FROM outcome WHERE withdrawn_at IS NULL{where} ORDER BY key""",
                values,
            ).fetchall()
            return [(row[0], bool(row[1])) for row in rows]

    def judged(self, namespace: int | None) -> Iterator[Judged]:
        """Yield the episodes judged by anybody but the agent, oldest first; those without a recall (proposals) are left out."""
        where, values = given({"outcome.namespace": namespace})
        with self._connections.read() as connection:
            kept: dict[int, int] = {}
            for row in connection.execute(f"{_SELECT}{where} ORDER BY outcome.key", values):
                number = row[_LESSON + 8]
                if number not in kept:
                    kept[number] = compacted_until(connection, number)
                yield _judged(row[:_LESSON], row[_LESSON:], kept[number])

    def arms(self, namespace: int | None) -> dict[str, int]:
        """Return the number of episodes in each arm, leaving out those whose arm was not drawn at random."""
        where, values = given({"namespace": namespace})
        with self._connections.read() as connection:
            query = f"SELECT arm, count(*) FROM episode WHERE holdout > 0{where} GROUP BY arm"
            return dict(connection.execute(query, values).fetchall())


def _judged(lesson: Sequence[Any], rest: Sequence[Any], compacted: int) -> Judged:
    reward, arm, holdout, recalls, showed, k, forgot, encoder, _, outcome, baseline, shadow, opinions = rest
    n = len(lesson[1]) // 8
    numbers = unpack_floats(lesson[4], NUMBERS) if n else np.zeros((0, NUMBERS), np.float32)
    places, propensity = opinion(opinions or b"", n if shadow is not None else 0)
    return Judged(
        lesson=feedback(lesson, reward, 1.0 / recalls),
        arm=arm,
        holdout=holdout,
        recalls=recalls,
        showed=bool(showed),
        k=k,
        forgot=bool(forgot),
        encoder=encoder,
        whole=outcome > compacted,
        utility=numbers[:, Column.UTILITY],
        propensity=numbers[:, Column.PROPENSITY],
        baseline=math.nan if baseline is None else baseline,
        shadow=shadow,
        shadow_places=places,
        shadow_propensity=propensity,
    )
