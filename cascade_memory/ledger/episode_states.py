"""The states of an episode: each change of ``episode.status`` is made here; only a recall, which opens it, is elsewhere.

An episode is *open* until somebody judges it (*settled*), its run says that nobody will (*censored*), or it has waited for too
long (*expired*). If its verdict is taken back, or the source of the verdict is forgotten, it is open again. The documentation
draws this (states.md); ``recalls`` opens episodes.
"""

from __future__ import annotations

from cascade_memory.domain.records import CLOSED
from cascade_memory.ledger.compaction import shrink
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.rows import note


def settle(connection: Connection, episode: int, *, at: float, source: str, reported: int | None) -> None:
    """Settle an open episode, or settle it anew; ``reported`` is the size of an agent's report that nobody has confirmed."""
    connection.execute(
        "UPDATE episode SET status = 'settled', closed_at = ?, source = ?, reported = ? WHERE key = ?",
        (at, source, reported, episode),
    )


def settle_as_before(connection: Connection, episode: int, source: str) -> None:
    """Set the source of a settled episode to that of an older outcome, which counts again."""
    connection.execute("UPDATE episode SET source = ?, reported = NULL WHERE key = ?", (source, episode))


def reopen(connection: Connection, episode: int) -> None:
    """Let a settled episode wait for an outcome again."""
    connection.execute(
        "UPDATE episode SET status = 'open', source = NULL, closed_at = NULL, reported = NULL WHERE key = ?", (episode,)
    )


def close(connection: Connection, episode_id: str, status: str, at: float) -> bool:
    """Close an open episode without an outcome, as ``censored`` or ``expired``; return False if it is not open."""
    row = connection.execute(
        "UPDATE episode SET status = ?, closed_at = ? WHERE id = ? AND status = 'open' RETURNING key, namespace",
        (status, at, episode_id),
    ).fetchone()
    if row is None:
        return False
    connection.execute("DELETE FROM attempt WHERE episode = ?", (row[0],))
    _closed(connection, *row)
    return True


def close_opened_by(connection: Connection, recall: int, at: float) -> None:
    """Censor the episode that this recall has opened, if it is still open and its run has not ended: nobody will end it."""
    row = connection.execute(
        """UPDATE episode SET status = 'censored', closed_at = ? WHERE status = 'open'
             AND key = (SELECT episode FROM recall WHERE key = ?)
             AND ? = (SELECT min(recall.key) FROM recall WHERE recall.episode = episode.key)
             AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.episode = episode.key)
           RETURNING key, namespace""",
        (at, recall, recall),
    ).fetchone()
    if row is not None:
        _closed(connection, *row)


def mend(connection: Connection, episode: int, *, judged: bool) -> None:
    """Close an episode whose status cannot be right: *settled* if it has an outcome, *censored* otherwise."""
    connection.execute(
        "UPDATE episode SET status = ?, closed_at = coalesce(closed_at, opened_at) WHERE key = ?",
        ("settled" if judged else "censored", episode),
    )


def delete(connection: Connection, episode: int) -> int:
    """Delete the row of an episode, once all that belongs to it is deleted; return how many rows were deleted."""
    return connection.execute("DELETE FROM episode WHERE key = ?", (episode,)).rowcount


def _closed(connection: Connection, episode: int, namespace: int) -> None:
    shrink(connection, [episode])  # nobody will learn from this episode
    note(connection, namespace, CLOSED, episode)
