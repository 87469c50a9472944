"""Compaction: recalls that are no longer learned from keep what was shown, and lose the other candidates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.records import Column
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.facts import fact, whole_number
from cascade_memory.ledger.rows import pack_floats, pack_ints, unpack_floats, unpack_ints

NUMBERS = len(Column)
COMPACTED = "compacted:{}"  # the name of a fact; the namespace id is filled in
_OTHERS = "id, episode, namespace, query, kind, k, at, policy, policy_version, encoder, baseline, forgot"
_NONE = np.zeros(0, np.int64)


def compacted_until(connection: Connection, namespace: int) -> int:
    """Return the key of the last outcome in a namespace whose recalls were compacted."""
    return whole_number(fact(connection, COMPACTED.format(namespace)))


def shrink(connection: Connection, episodes: Iterable[int]) -> None:
    """Keep only the shown candidates of these episodes' recalls, and delete the episodes' vectors."""
    for episode in episodes:
        connection.execute("DELETE FROM episode_vector WHERE key = ?", (episode,))
        rows = connection.execute(
            f"""SELECT key, candidates, groups, chosen, numbers, agreement, shown, {_OTHERS} FROM recall
                WHERE episode = ?
                  AND (length(features) + length(context) > 0 OR length(candidates) > length(chosen) OR shadow IS NOT NULL)""",
            (episode,),
        ).fetchall()
        # Updating a row to a smaller one leaves a hole in its page; deleting and inserting it lets SQLite merge pages.
        connection.executemany("DELETE FROM recall WHERE key = ?", [(row[0],) for row in rows])
        connection.executemany(
            f"""INSERT INTO recall (key, candidates, groups, chosen, numbers, agreement, shown, {_OTHERS}, features, context)
                VALUES ({",".join("?" * (7 + _OTHERS.count(",") + 1))}, ?, ?)""",
            [(row[0], *_only(row, unpack_ints(row[3]) if row[6] else _NONE), *row[6:], b"", b"") for row in rows],
        )


class Offering(NamedTuple):
    """The recalls that had certain cases as candidates, the number of recalls examined, and the key of the last one."""

    recalls: list[int]
    looked_at: int
    last: int


def offering(connection: Connection, namespace: int, keys: Sequence[int], after: int, limit: int) -> Offering:
    """Search up to ``limit`` recalls after the key ``after`` for those that had one of the cases ``keys`` as a candidate."""
    gone = np.array(sorted(keys), np.int64)
    rows = connection.execute(
        "SELECT key, candidates FROM recall WHERE namespace = ? AND key > ? ORDER BY key LIMIT ?", (namespace, after, limit)
    ).fetchall()
    hit = [key for key, candidates in rows if np.isin(unpack_ints(candidates), gone).any()]
    return Offering(hit, len(rows), rows[-1][0] if rows else after)


def take_out(connection: Connection, recalls: Sequence[int], keys: Sequence[int]) -> None:
    """Remove cases that are being forgotten from the logged candidates of these recalls.

    A recall that loses a candidate is marked as ``forgot``: the remaining propensities no longer describe the original choice,
    and without the mark, a recall that lost all candidates would look like a recall from an empty memory.
    """
    gone = np.array(sorted(keys), np.int64)
    for key in recalls:
        row = connection.execute(
            "SELECT key, candidates, groups, chosen, numbers, agreement, features, shadow_numbers FROM recall WHERE key = ?",
            (key,),
        ).fetchone()
        if row is None:
            continue
        candidates = unpack_ints(row[1])
        stays = np.flatnonzero(~np.isin(candidates, gone))
        rest = (None if blob is None else _rows(blob, len(candidates), stays) for blob in row[6:])
        connection.execute(
            """UPDATE recall SET candidates = ?, groups = ?, chosen = ?, numbers = ?, agreement = ?, features = ?,
                 shadow_numbers = ?, forgot = 1 WHERE key = ?""",
            (*_only(row, stays), *rest, row[0]),
        )


def _rows(blob: bytes, n: int, places: NDArray[np.int64]) -> bytes:
    return pack_floats(unpack_floats(blob).reshape(n, -1)[places]) if blob else blob


def _only(row: Sequence[Any], places: NDArray[np.int64]) -> tuple[bytes, bytes, bytes, bytes, bytes | None]:
    """Return (candidates, groups, chosen, numbers, agreement) of a recall, reduced to the candidates at these positions."""
    _, candidates, groups, chosen, numbers, agreement = row[:6]
    new_place = {int(place): new for new, place in enumerate(places)}
    still = [new_place[int(place)] for place in unpack_ints(chosen) if int(place) in new_place]
    return (
        pack_ints(unpack_ints(candidates)[places]),
        pack_ints(unpack_ints(groups)[places]),
        pack_ints(np.array(still, np.int64)),
        pack_floats(unpack_floats(numbers, NUMBERS)[places]) if numbers else b"",
        None if agreement is None else pack_floats(unpack_floats(agreement)[places]),
    )
