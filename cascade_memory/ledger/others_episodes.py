"""Deletes outcomes that somebody reported on other people's episodes: each episode is then as it was before."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping

from cascade_memory.domain.records import Settlement
from cascade_memory.ledger import episode_states, owned, room
from cascade_memory.ledger.coming_back import count_again
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.events import HEARING
from cascade_memory.ledger.observer import Standing
from cascade_memory.ledger.recalls import count_use, shown_cases, shown_to
from cascade_memory.ledger.reports import withdraw
from cascade_memory.ledger.rows import KEYS, fetched_for
from cascade_memory.ledger.schema import ATTEMPT
from cascade_memory.ledger.verifications import reconsider


def forget_outcomes(
    connection: Connection, outcomes: Iterable[int], again: Mapping[int, Settlement] | None = None
) -> Counter[str]:
    """Delete outcomes and what they counted; return the numbers of deleted rows, by the names that their tables declare.

    ``again`` gives, by the key of a deleted outcome, the older outcome that counts in its place, as it was prepared. For a key
    that is missing there, the older outcome counts again as well, but its case and its labels are not stored anew. The cases
    that the deleted outcomes verified are not touched.
    """
    query = f"SELECT withdrawn_at IS NULL, key, episode, namespace, value, at, unkept FROM outcome WHERE key IN ({KEYS})"
    rows = fetched_for(connection, query, sorted(outcomes))
    rows = sorted(rows, key=lambda row: row[:2])  # first those that do not count any more
    gone = Counter(outcomes=len(rows))
    for current, key, episode, namespace, value, at, unkept in rows:
        counts_again = False
        if current:
            gone += owned.count_with(connection, "outcome", key)
            counts_again = again is not None and key in again and count_again(connection, again[key])
            if not counts_again:
                connection.execute("UPDATE outcome SET cases_key = NULL WHERE key = ?", (key,))
                withdraw(connection, namespace, time.time(), key, "forgotten")
            room.uncount(connection, () if unkept == "capped" else shown_cases(connection, episode), value)
        else:  # what it had replaced was replaced by what has replaced it
            connection.execute(
                """UPDATE outcome SET withdrawn_at = (SELECT withdrawn_at FROM outcome AS gone WHERE gone.key = ?)
                   WHERE episode = ? AND withdrawn_at = ? AND key < ?""",
                (key, episode, at, key),
            )
        owned.delete_with(connection, "outcome", [key])
        connection.execute("DELETE FROM outcome WHERE key = ?", (key,))
        if current and not counts_again and not _as_replaced(connection, episode, at):
            _reopen(connection, episode)
    return gone


def _as_replaced(connection: Connection, episode: int, at: float) -> bool:
    """Let the outcome that was replaced at the moment ``at`` count again; return whether there is one."""
    older = connection.execute(
        """SELECT key, value, source, cases_key, unkept FROM outcome WHERE episode = ? AND withdrawn_at = ?
           ORDER BY key DESC LIMIT 1""",
        (episode, at),
    ).fetchone()
    if older is None:
        return False
    key, value, source, case, unkept = older
    there = "SELECT key FROM cases WHERE key = ? UNION ALL SELECT key FROM expired WHERE key = ?"
    still = None if case is None else connection.execute(there, (case, case)).fetchone()
    kept = None if still is None else still[0]
    connection.execute("UPDATE outcome SET withdrawn_at = NULL, cases_key = ? WHERE key = ?", (kept, key))
    for one in HEARING:
        one.on_settled(connection, Standing(episode, key))
    episode_states.settle_as_before(connection, episode, source)
    count_use(connection, shown_to(connection, episode), value, sign=1, unkept=unkept)
    if kept is not None:
        reconsider(connection, kept)
    return True


def _reopen(connection: Connection, episode: int) -> None:
    """Open an episode again, so that it waits for an outcome; restore what its run recorded."""
    episode_states.reopen(connection, episode)
    connection.execute(
        f"""INSERT INTO attempt ({ATTEMPT.listed}) SELECT {ATTEMPT.listed} FROM judged_attempt
            WHERE episode = ? AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.episode = judged_attempt.episode)""",
        (episode,),
    )
    connection.execute("DELETE FROM judged_attempt WHERE episode = ?", (episode,))
