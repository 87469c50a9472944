"""Lineage: a case that was made while others were shown is trusted no more than the least trusted of them."""

from __future__ import annotations

from collections.abc import Sequence

from cascade_memory.domain.trust import LEVELS
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.recalls import shown_cases


def expression(level: int, shown: Sequence[int]) -> tuple[str, list[int]]:
    """Return what a statement says for the trust of a case, with its parameters: no statement of its own is needed.

    A case that was shown and does not exist any more limits nothing.

    >>> expression(3, [])
    ('?', [3])
    """
    if not shown:
        return "?", [level]
    worse = f"SELECT min(trust) FROM cases WHERE key IN ({', '.join('?' * len(shown))}) AND trust < ?"
    return f"coalesce(({worse}), ?)", [*shown, level, level]


def left(connection: Connection, key: int, most: int) -> int:
    """Return how far the verifications that a case still has are trusted: the best of them counts, and at most ``most``."""
    additions = connection.execute("SELECT DISTINCT source FROM addition WHERE cases_key = ?", (key,)).fetchall()
    best = max((_level(source) for (source,) in additions), default=0)
    outcomes = connection.execute(
        "SELECT source, episode FROM outcome WHERE cases_key = ? AND withdrawn_at IS NULL ORDER BY key", (key,)
    ).fetchall()
    for source, episode in sorted(outcomes, key=lambda one: -_level(one[0])):
        if best >= min(most, _level(source)):
            break
        trust, values = expression(_level(source), shown_cases(connection, episode))
        best = max(best, int(connection.execute(f"SELECT {trust}", values).fetchone()[0]))
    return min(best, most)


def _level(source: object) -> int:
    return LEVELS.get(str(source), 0)  # an edited row may hold anything
