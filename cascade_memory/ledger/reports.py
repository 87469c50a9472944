"""Withdraws outcomes, and limits how many unconfirmed reports of agents may wait."""

from __future__ import annotations

from cascade_memory.domain.limits import MOST_REPORTED, MOST_REPORTED_BYTES
from cascade_memory.domain.records import WITHDRAWN
from cascade_memory.errors import QuotaExceeded
from cascade_memory.ledger import episode_states
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.events import HEARING
from cascade_memory.ledger.observer import WhyWithdrawn
from cascade_memory.ledger.recalls import count_use, keep_metadata, shown_to
from cascade_memory.ledger.rows import note
from cascade_memory.ledger.verifications import metadata_of_outcome, reconsider


def check_room(connection: Connection, namespace: int, more: int, size: int) -> None:
    """Raise if a namespace would hold too many unconfirmed reports of agents, with ``more`` reports and ``size`` more bytes."""
    count, held = connection.execute(
        "SELECT count(*), coalesce(sum(reported), 0) FROM episode WHERE namespace = ? AND reported IS NOT NULL", (namespace,)
    ).fetchone()
    if count + more > MOST_REPORTED or held + size > MOST_REPORTED_BYTES:
        raise QuotaExceeded(
            f"{count:,} reports of agents ({held / 2**20:.1f} MiB of text) wait for confirmation in this namespace; the limit "
            f"is {MOST_REPORTED:,} reports and {MOST_REPORTED_BYTES // 2**20} MiB. Confirm or reject some first "
            "(cascade-memory review pending), or drop them (memory.episodes.expire(older_than, reported=True), "
            "memory.forget(episode_id=...))"
        )


def withdraw(
    connection: Connection, namespace: int, at: float, outcome: int, why: WhyWithdrawn = "taken back", *, keep: bool = False
) -> None:
    """Undo what the current outcome did: its case, its labels, its counts. With ``keep``, its content stays, for an undo."""
    episode, value, case_key, unkept = connection.execute(
        "SELECT episode, value, cases_key, unkept FROM outcome WHERE key = ?", (outcome,)
    ).fetchone()
    # A withdrawn outcome cannot be found by its content any more, so that content must not stay.
    # With ``keep`` its metadata can still be found, and so can its episode.
    gone = "withdrawn_at = ?" if keep else "withdrawn_at = ?, metadata = NULL, solution_kind = NULL, solution = NULL"
    connection.execute(f"UPDATE outcome SET {gone} WHERE key = ?", (at, outcome))
    if not keep:
        connection.execute("DELETE FROM outcome_field WHERE outcome = ?", (outcome,))
    connection.execute("UPDATE recall SET agreement = NULL WHERE episode = ?", (episode,))
    count_use(connection, shown_to(connection, episode), value, sign=-1, unkept=unkept)
    for one in HEARING:
        one.on_withdrawn(connection, outcome, episode, why)
    if case_key is not None:
        reconsider(connection, case_key)
    note(connection, namespace, WITHDRAWN, outcome)


def take_back_report(connection: Connection, episode_id: str, at: float) -> None:
    """Withdraw an agent's own report and open the episode again. The episode's metadata stay."""
    row = connection.execute(
        """SELECT episode.key, episode.namespace, outcome.key FROM episode JOIN outcome ON outcome.episode = episode.key
           WHERE episode.id = ? AND episode.status = 'settled' AND episode.source = 'agent' AND withdrawn_at IS NULL""",
        (episode_id,),
    ).fetchone()
    if row is None:
        return
    episode, namespace, outcome = row
    keep_metadata(connection, namespace, episode, metadata_of_outcome(connection, outcome))
    withdraw(connection, namespace, at, outcome)
    episode_states.reopen(connection, episode)
