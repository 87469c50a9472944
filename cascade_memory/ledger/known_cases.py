"""What is known of a case that is about to be stored: it is asked together with other things that the transaction reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cascade_memory.domain.records import NewCase
from cascade_memory.ledger import case_states
from cascade_memory.ledger.database import Connection

# The case with the same query and solution, the expired ones that it replaces, and the number of its solution.
KNOWN = f"""same.key, same.id, same_text.solution, same.hidden & {case_states.QUARANTINED},
  (SELECT group_concat(key) FROM expired WHERE (namespace = ? AND pair = ?) OR id = ?),
  (SELECT id FROM solution WHERE namespace = ? AND digest = ?)"""
SAME = """LEFT JOIN cases AS same ON same.namespace = ? AND same.pair = ? LEFT JOIN case_text AS same_text
  ON same_text.key = same.key"""


class Known:
    """What was asked before a case is stored; the answer of a server may arrive only when it is looked at."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows

    @property
    def same(self) -> Sequence[Any] | None:
        """The key, the id, and the solution of the case with the same query and solution, and whether it is in quarantine."""
        return None if self._rows[0][0] is None else self._rows[0][:4]

    @property
    def displaced(self) -> list[int]:
        """The keys of expired cases that it replaces."""
        return [int(key) for key in (self._rows[0][4] or "").split(",") if key]

    @property
    def has_solution(self) -> bool:
        """True if its solution has a number."""
        return self._rows[0][5] is not None


def known_values(case: NewCase) -> tuple[Any, ...]:
    """Return the parameters of ``KNOWN`` and ``SAME``."""
    pair = (case.namespace, case.pair_key)
    return (*pair, case.id, case.namespace, case.solution_key, *pair)


def known_of(connection: Connection, case: NewCase) -> Known:
    """Ask what is known of a case."""
    query = f"SELECT {KNOWN} FROM (SELECT 1 AS one) AS one {SAME}"
    return Known(connection.execute(query, known_values(case)).fetchall())
