"""A person's verdict on an episode, inside the transaction that records its outcome: what is kept, and the undo."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypedDict

from cascade_memory.domain.actions import LACKED, VERDICTS, NewAction, Taken
from cascade_memory.domain.episode import TRUSTED_SOURCES
from cascade_memory.domain.records import Settlement
from cascade_memory.domain.trust import GREATEST, LEVELS
from cascade_memory.errors import AlreadyRewarded, ContentChanged, UndoRefused
from cascade_memory.ledger import action_log, cases, episode_states
from cascade_memory.ledger.case_states import is_there, set_hidden
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.reports import withdraw
from cascade_memory.ledger.schema import ATTEMPT

# Names of counts. The last three say that a case went with its outcome, and what people had decided about it, for an undo.
SHOWN_AGAIN, GONE, PIN_GONE, HIDING_GONE = "cases shown again", "cases deleted", "pinned ones", "hidden ones"


class OfCases(TypedDict):
    """What a verdict has noted about the case that it made and the one that it hid or deleted, by field of ``Taken``."""

    showed_again: bool
    deleted: bool
    pinned: bool
    hidden: bool
    lacked: int


def noted_of_cases(counts: Mapping[str, object]) -> OfCases:
    """Return what the counts of a verdict say about cases."""
    lacked = counts.get(LACKED)
    return {
        "showed_again": SHOWN_AGAIN in counts,
        "deleted": GONE in counts,
        "pinned": PIN_GONE in counts,
        "hidden": HIDING_GONE in counts,
        "lacked": min(max(0, lacked), GREATEST) if isinstance(lacked, int) else 0,
    }


def is_verdict(action: NewAction | None) -> bool:
    """Tell whether an action decides on an episode, so that the usual rules for rewards do not apply."""
    return action is not None and action.kind in (*VERDICTS, "undo")


def check_may_judge(action: NewAction, current: Mapping[str, Any] | None, episode_id: str) -> None:
    """Raise unless a verdict may replace the current outcome: only one person can confirm or reject an episode."""
    if action.takes_back is not None:
        if current is None or current["key"] != action.takes_back.outcome:
            raise UndoRefused(f"episode {episode_id!r} was judged again since: nothing was changed")
    elif not action.corrects and current is not None and current["source"] in TRUSTED_SOURCES:
        raise AlreadyRewarded(
            f"episode {episode_id!r} was judged by somebody else before (source {current['source']!r}, reward "
            f"{current['value']:g}): nothing was changed. If that is wrong, correct its answer, or take that verdict back"
        )


def check_as_seen(connection: Connection, namespace: int, action: NewAction) -> None:
    """Refuse to correct a case that has changed since the person saw it: of several people, only one can correct it."""
    if action.seen is None or action.replaces is None:
        return
    found = cases.stored(connection, action.replaces, namespace)
    if found is None or found.fingerprint != action.seen:
        raise ContentChanged.of_case(action.replaces, action.seen)


def prepare(
    connection: Connection, namespace: int, action: NewAction, current: Mapping[str, Any] | None, episode: int, episode_id: str
) -> None:
    """Raise unless a verdict may be recorded; set aside what the run recorded, which the person judged, for an undo."""
    if not is_verdict(action):
        return
    check_may_judge(action, current, episode_id)
    check_as_seen(connection, namespace, action)
    if action.takes_back is None:
        set_aside_attempt(connection, episode)


def set_aside_attempt(connection: Connection, episode: int) -> None:
    """Set aside what the run of an episode recorded, so that it can come back with the older outcome.

    This replaces what was set aside before. If the run has recorded nothing since then, nothing changes.
    """
    renewed = "EXISTS (SELECT 1 FROM attempt WHERE episode = ?)"
    connection.execute(f"DELETE FROM judged_attempt WHERE episode = ? AND {renewed}", (episode, episode))
    connection.execute(
        f"INSERT INTO judged_attempt ({ATTEMPT.listed}) SELECT {ATTEMPT.listed} FROM attempt WHERE episode = ?", (episode,)
    )


def conclude(
    connection: Connection,
    new: Settlement,
    action: NewAction,
    episode: int,
    outcome: int,
    current: Mapping[str, Any] | None,
    made: str | None,
) -> None:
    """Hide and show the cases that a verdict decides about, and write its entry in the audit log.

    A reward by hand, which is no verdict, gets an entry only if it replaced an outcome. ``current`` is the replaced outcome,
    and ``made`` the id of the case that the new one stored.
    """
    namespace = new.namespace
    if action.takes_back is not None:
        _give_back(connection, namespace, action.takes_back, episode)
        if action.takes_back.is_logged:  # otherwise its source is undone as a whole, which has an entry of its own
            action_log.write(connection, namespace, action, subject=new.episode_id)
        return
    hid, counts = None, {"outcomes": 1}
    if action.corrects and made is not None:
        for wrong in {None if current is None else current["case"], action.replaces} - {None, made}:
            hid = wrong if set_hidden(connection, namespace, str(wrong), hidden=True) else hid
        if set_hidden(connection, namespace, made, hidden=False):
            counts[SHOWN_AGAIN] = 1
    known = None if current is None or not is_verdict(action) else current["case"]
    if current is not None and known is not None and not is_there(connection, known):
        hid, lacked = known, max(0, LEVELS.get(current["source"], 0) - current["trust"])
        counts |= {GONE: 1, PIN_GONE: current["pinned"], HIDING_GONE: current["hidden"], LACKED: lacked}
    if current is not None or is_verdict(action):
        action_log.write(
            connection,
            namespace,
            action,
            subject=new.episode_id,
            counts=counts,
            outcome=outcome if is_verdict(action) else None,
            replaced=None if current is None or not is_verdict(action) else current["key"],
            made=made,
            hid=hid,
        )


def _give_back(connection: Connection, namespace: int, taken: Taken, episode: int) -> None:
    """Show the case that a verdict hid, and hide the one that it showed again.

    What the run recorded comes back, unless the outcome of a trusted source counts again.
    """
    if taken.hid is not None and not taken.deleted:
        set_hidden(connection, namespace, taken.hid, hidden=False)
    if taken.made is not None and taken.showed_again:
        set_hidden(connection, namespace, taken.made, hidden=True)
    if taken.before is None or taken.before.source not in TRUSTED_SOURCES:
        connection.execute("DELETE FROM attempt WHERE episode = ?", (episode,))
        connection.execute(
            f"INSERT INTO attempt ({ATTEMPT.listed}) SELECT {ATTEMPT.listed} FROM judged_attempt WHERE episode = ?", (episode,)
        )
        connection.execute("DELETE FROM judged_attempt WHERE episode = ?", (episode,))


def reopen(connection: Connection, namespace: int, action: NewAction, taken: Taken) -> None:
    """Take back a verdict on an episode that was open: it waits for an outcome again, with what its run recorded."""
    row = connection.execute(
        "SELECT episode FROM outcome WHERE key = ? AND namespace = ? AND withdrawn_at IS NULL", (taken.outcome, namespace)
    ).fetchone()
    if row is None or taken.outcome is None:
        raise UndoRefused(f"episode {taken.subject!r} was judged again or forgotten since: nothing was changed")
    withdraw(connection, namespace, time.time(), taken.outcome)
    episode_states.reopen(connection, row[0])
    _give_back(connection, namespace, taken, row[0])
    action_log.write(connection, namespace, action, subject=taken.subject)
