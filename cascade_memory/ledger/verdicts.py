"""A person's verdict on an episode, inside the transaction that records its outcome: what it keeps, and how it goes back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from cascade_memory.domain.actions import VERDICTS, NewAction, Taken
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.records import HIDDEN, UNHIDDEN
from cascade_memory.errors import AlreadyRewarded, UndoRefused
from cascade_memory.ledger import action_log, cases
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.reports import withdraw

SHOWN_AGAIN = "cases shown again"  # the name of a count
_ATTEMPT = "episode, status, solution_kind, solution, at"


def is_verdict(action: NewAction | None) -> bool:
    """Tell whether an action decides on an episode, so that the usual rules for rewards do not apply."""
    return action is not None and action.kind in (*VERDICTS, "undo")


def check_may_judge(action: NewAction, current: Mapping[str, Any] | None, episode_id: str) -> None:
    """Raise unless a verdict may replace the current outcome: of several people, one confirms or rejects."""
    if action.takes_back is not None:
        if current is None or current["key"] != action.takes_back.outcome:
            raise UndoRefused(f"episode {episode_id!r} was judged again since: nothing was changed")
    elif action.kind != "correct" and current is not None and current["source"] in TRUSTED_SOURCES:
        raise AlreadyRewarded(
            f"episode {episode_id!r} was judged by somebody else before (source {current['source']!r}, reward "
            f"{current['value']:g}): nothing was changed. If that is wrong, correct its answer, or take that verdict back"
        )


def keep_attempt(connection: Connection, episode: int, action: NewAction) -> None:
    """Set aside what the run recorded, as a person judged it; an undo brings it back."""
    if action.takes_back is None:
        connection.execute("DELETE FROM judged_attempt WHERE episode = ?", (episode,))
        connection.execute(
            f"INSERT INTO judged_attempt ({_ATTEMPT}) SELECT {_ATTEMPT} FROM attempt WHERE episode = ?", (episode,)
        )


def write_verdict(
    connection: Connection,
    namespace: int,
    action: NewAction,
    *,
    episode: int,
    episode_id: str,
    outcome: int,
    current: Mapping[str, Any] | None,
    case: tuple[int | None, str | None],
) -> None:
    """Do what else a verdict means, and write its entry."""
    made, hid, counts = case[1], None, {"outcomes": 1}
    if action.takes_back is not None:
        _give_back(connection, namespace, action.takes_back, episode)
    if action.kind == "correct":
        for wrong in {None if current is None else current["case"], action.replaces} - {None, made}:
            hid = wrong if set_hidden(connection, namespace, str(wrong), hidden=True) else hid
        if made is not None and set_hidden(connection, namespace, made, hidden=False):
            counts[SHOWN_AGAIN] = 1
    replaced = None if current is None else current["key"]
    action_log.write(
        connection,
        namespace,
        action,
        subject=episode_id,
        counts=counts,
        outcome=outcome,
        replaced=replaced,
        made=made,
        hid=hid,
    )


def set_hidden(connection: Connection, namespace: int, case_id: str, *, hidden: bool) -> bool:
    """Hide a case or show it again; return whether that changed anything. All processes read it in the log."""
    changed = connection.execute(
        "UPDATE cases SET hidden = ? WHERE id = ? AND namespace = ? AND hidden <> ? RETURNING key",
        (int(hidden), case_id, namespace, int(hidden)),
    ).fetchone()
    if changed is not None:
        cases.note(connection, namespace, HIDDEN if hidden else UNHIDDEN, changed[0])
    return changed is not None


def _give_back(connection: Connection, namespace: int, taken: Taken, episode: int) -> None:
    """Show again what a verdict hid, and the other way round; the run's own record comes back if it counts again."""
    if taken.hid is not None:
        set_hidden(connection, namespace, taken.hid, hidden=False)
    if taken.made is not None and taken.showed_again:
        set_hidden(connection, namespace, taken.made, hidden=True)
    if taken.before is None or taken.before.source not in TRUSTED_SOURCES:
        connection.execute("DELETE FROM attempt WHERE episode = ?", (episode,))
        connection.execute(
            f"INSERT INTO attempt ({_ATTEMPT}) SELECT {_ATTEMPT} FROM judged_attempt WHERE episode = ?", (episode,)
        )
    connection.execute("DELETE FROM judged_attempt WHERE episode = ?", (episode,))
    if taken.replaced is not None:  # its content is that of the new outcome now
        gone = "solution_kind = NULL, solution = NULL, metadata = NULL"
        connection.execute(f"UPDATE outcome SET {gone} WHERE key = ? AND withdrawn_at IS NOT NULL", (taken.replaced,))
        connection.execute("DELETE FROM outcome_field WHERE outcome = ?", (taken.replaced,))


def reopen(connection: Connection, namespace: int, action: NewAction, taken: Taken) -> None:
    """Take back a verdict on an episode that was open: it waits again, with what its run recorded."""
    row = connection.execute(
        "SELECT episode FROM outcome WHERE key = ? AND namespace = ? AND withdrawn_at IS NULL", (taken.outcome, namespace)
    ).fetchone()
    if row is None or taken.outcome is None:
        raise UndoRefused(f"episode {taken.subject!r} was judged again or forgotten since: nothing was changed")
    withdraw(connection, namespace, time.time(), taken.outcome)
    connection.execute(
        "UPDATE episode SET status = 'open', source = NULL, closed_at = NULL, reported = NULL WHERE key = ?", (row[0],)
    )
    _give_back(connection, namespace, taken, row[0])
    action_log.write(connection, namespace, action, subject=taken.subject)
