"""Deletes the steps that failed runs are blamed for, with the outcomes and the cases that they come from.

All functions run inside the caller's transaction. ``Lost`` are the rows (namespace, warning) of failures that were deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from cascade_memory.ledger import action_log
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.rows import KEYS, executed_for, fetched_for

Lost: TypeAlias = Sequence[Any]

_DELETE = "DELETE FROM failure WHERE {} RETURNING namespace, warning"
_VERIFIED = "(SELECT 1 FROM outcome WHERE outcome.cases_key = failure.cases_key AND withdrawn_at IS NULL)"


def withdraw(connection: Connection, outcome: int, episode: int) -> Lost:
    """Delete the failure of an outcome that counts no more; what was checked in its episode has no reward now.

    The caller says ``settle_up`` when it is known whether another failure has taken its place.
    """
    connection.execute("UPDATE checked SET reward = NULL WHERE episode = ?", (episode,))
    return connection.execute(_DELETE.format("key = ?"), (outcome,)).fetchall()


def of_episode(connection: Connection, episode: int) -> Lost:
    """Return the failures of an episode that is about to be deleted, for ``settle_up``."""
    query = "SELECT namespace, warning FROM failure WHERE key IN (SELECT key FROM outcome WHERE episode = ?)"
    return connection.execute(query, (episode,)).fetchall()


def settle_up(connection: Connection, lost: Lost, *, forgotten: bool = False) -> None:
    """Delete what rests on failures that are gone: a model's advice was made from them.

    What people have decided about a warning goes with its last failure. If that was ``forgotten``, so is what came of the
    checks of this warning in other episodes.
    """
    gone: list[str] = []
    for warning in sorted({(int(namespace), str(name)) for namespace, name in lost}):
        of_warning = "WHERE namespace = ? AND warning = ?"
        if connection.execute(f"SELECT 1 FROM failure {of_warning} LIMIT 1", warning).fetchone() is not None:
            connection.execute(f"DELETE FROM warning_decision {of_warning} AND by_model = 1", warning)
            continue
        connection.execute(f"DELETE FROM warning_decision {of_warning}", warning)
        if forgotten:
            connection.execute(f"DELETE FROM checked {of_warning}", warning)
        gone.append(warning[1])
    if gone:
        action_log.drop_notes(connection, gone)


def forget_cases(connection: Connection, cases: Sequence[int]) -> None:
    """Blank what worked instead according to cases that are forgotten, and delete a model's advice that was made from it."""
    _blank(connection, f"cases_key IN ({KEYS})", cases)


def lose_cases(connection: Connection, cases: Sequence[int]) -> None:
    """Do so with cases that go for another reason, unless an episode still verifies them: by it they can be forgotten."""
    unkept = f"cases_key IN ({KEYS}) AND cases_key NOT IN (SELECT key FROM expired) AND NOT EXISTS {_VERIFIED}"
    _blank(connection, unkept, cases)


def _blank(connection: Connection, where: str, cases: Sequence[int]) -> None:
    told = fetched_for(connection, f"SELECT DISTINCT namespace, warning FROM failure WHERE {where}", cases)
    if told:
        executed_for(connection, f"UPDATE failure SET instead = '', cases_key = NULL WHERE {where}", cases)
        settle_up(connection, told)
