"""What outcomes teach, and what they add up to."""

from __future__ import annotations

import sqlite3
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.records import Unkept
from cascade_memory.ledger.compaction import NUMBERS
from cascade_memory.ledger.packing import unpack_floats, unpack_ints
from cascade_memory.ledger.reading import usable
from cascade_memory.ledger.recalls import FEEDBACK_COLUMNS, SHADOW_COLUMNS, feedback, shadow_feedback
from cascade_memory.ports.policy import Feedback


def of_outcome(connection: sqlite3.Connection, outcome: int, shadow: str | None = None) -> list[Feedback]:
    """Return one entry per recall of the episode; its recalls share the credit.

    With ``shadow``, as the shadow policy of this name saw them, of those recalls that it saw.
    """
    row = connection.execute(
        "SELECT episode, value FROM outcome WHERE key = ? AND learns = 1 AND withdrawn_at IS NULL", (outcome,)
    ).fetchone()
    if row is None:
        return []
    columns, built = (FEEDBACK_COLUMNS, feedback) if shadow is None else (SHADOW_COLUMNS, shadow_feedback)
    recalls = connection.execute(
        f"SELECT {columns} FROM recall WHERE episode = ?1 AND kind = 'recall' AND (?2 IS NULL OR shadow = ?2) ORDER BY key",
        (row[0], shadow),
    ).fetchall()
    return usable(recalls, lambda recall: built(recall, row[1], 1.0 / len(recalls)))


def _last(namespace: int | None, limit: int, until: int = 2**62) -> tuple[str, tuple[int, ...]]:
    """Return a query for (key, episode) of the last outcomes that are learned from, newest first, and its parameters."""
    where, values = ("namespace = ? AND", (namespace,)) if namespace is not None else ("", ())
    learned = f"{where} learns = 1 AND withdrawn_at IS NULL AND key <= ?"
    return f"SELECT key, episode FROM outcome WHERE {learned} ORDER BY key DESC LIMIT ?", (*values, until, limit)


def votes(
    connection: sqlite3.Connection, namespace: int, limit: int
) -> list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]:
    """Return (case keys, similarity, agreement) of the recalls of the last outcomes in which something was verified."""
    last, values = _last(namespace, limit)
    rows = connection.execute(
        f"""SELECT candidates, numbers, agreement FROM recall
            WHERE episode IN (SELECT episode FROM ({last})) AND agreement IS NOT NULL AND length(numbers) > 0""",
        values,
    )
    return usable(rows, _vote)


def _vote(row: tuple[bytes, bytes, bytes]) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    keys, similarity, agreed = unpack_ints(row[0]), unpack_floats(row[1], NUMBERS)[:, 0], unpack_floats(row[2])
    if not len(keys) == len(similarity) == len(agreed):
        raise ValueError("the arrays of this recall do not belong together")
    return keys, similarity, agreed


def recent(
    connection: sqlite3.Connection, namespace: int | None, limit: int, until: int = 2**62, shadow: str | None = None
) -> list[Feedback]:
    """Return the entries of the last ``limit`` outcomes of a namespace, or of all, oldest first."""
    keys = connection.execute(*_last(namespace, limit, until)).fetchall()
    return [entry for key, _ in reversed(keys) for entry in of_outcome(connection, key, shadow)]


def counts(connection: sqlite3.Connection, namespace: int | None) -> dict[str, float]:
    """Return how many of everything there are, and the mean reward."""
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
    standing = f"{where} {'AND' if where else 'WHERE'} withdrawn_at IS NULL"
    found["rewards"], found["mean_reward"] = connection.execute(
        f"SELECT count(*), coalesce(avg(value), 0) FROM outcome {standing}", values
    ).fetchone()
    found.update({f"unkept_{why}": 0 for why in get_args(Unkept)})
    unkept = f"SELECT 'unkept_' || unkept, count(*) FROM outcome {standing} AND unkept IS NOT NULL GROUP BY unkept"
    found.update(connection.execute(unkept, values).fetchall())
    return found


def rewards(connection: sqlite3.Connection, namespace: int | None) -> list[tuple[float, bool]]:
    """Return (value, whether a case was shown) of every standing outcome, oldest first."""
    rows = connection.execute(
        """SELECT outcome.value, (SELECT coalesce(max(shown AND length(chosen) > 0), 0) FROM recall
                                  WHERE recall.episode = outcome.episode)
           FROM outcome WHERE withdrawn_at IS NULL AND (?1 IS NULL OR namespace = ?1) ORDER BY key""",
        (namespace,),
    ).fetchall()
    return [(row[0], bool(row[1])) for row in rows]
