"""Puts back what counted before an outcome that is forgotten or taken back.

The older outcomes that were replaced count again. If somebody reported an outcome on an episode of others, the episode is then
as it was before. And the verdicts of an actor are taken back.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from cascade_memory.domain.actions import VERDICTS, NewAction, Taken
from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.records import Settlement
from cascade_memory.errors import AlreadyRewarded, ContentChanged, EpisodeClosed, InvalidInput, UndoRefused, UnknownCase
from cascade_memory.ledger import action_log, actions, episode_states, owned, room
from cascade_memory.ledger.case_states import set_hidden
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.declaring import UNDONE
from cascade_memory.ledger.events import HEARING
from cascade_memory.ledger.observer import Standing
from cascade_memory.ledger.outcomes import settled
from cascade_memory.ledger.provenance import conditions
from cascade_memory.ledger.recalls import count_use, shown_cases, shown_to
from cascade_memory.ledger.reports import withdraw
from cascade_memory.ledger.rows import KEYS, fetched_for
from cascade_memory.ledger.schema import ATTEMPT
from cascade_memory.ledger.verdicts import noted_of_cases
from cascade_memory.ledger.verifications import reconsider

_CURRENT = f"""SELECT outcome.key, outcome.at, episode.key, episode.id FROM outcome
  JOIN episode ON episode.key = outcome.episode WHERE withdrawn_at IS NULL AND outcome.key IN ({KEYS})"""
_OLDER = "SELECT key, at, cases_key FROM outcome WHERE episode = ? AND withdrawn_at = ? ORDER BY key DESC LIMIT 1"
_GONE = f"SELECT ref, id FROM change WHERE id IS NOT NULL AND ref IN ({KEYS})"
_NOT_UNDONE = f"NOT {UNDONE}"
_VERDICT = f"SELECT counts, made, hid, key, id, subject FROM action WHERE {_NOT_UNDONE}"
_FLAG = f"SELECT kind FROM action WHERE subject = ? AND kind IN (?, ?) AND {_NOT_UNDONE}"
# What an edited row can cause, or somebody who was faster. A failure of the database itself is none of these.
_ODD = (UndoRefused, UnknownCase, EpisodeClosed, AlreadyRewarded, ContentChanged, InvalidInput, ValueError, TypeError, KeyError)
_VERDICTS = f"{_VERDICT} AND outcome IN ({KEYS}) AND kind IN ({', '.join(repr(kind) for kind in VERDICTS)})"


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


def coming_back(connection: Connection, outcomes: Iterable[int]) -> list[tuple[Taken, int | None]]:
    """Return what to take back to undo these outcomes, for those in whose place an older outcome then counts again.

    Each comes with the key of the case (if any) of the older outcome. A source may have judged an episode several times: the
    outcome that counted before the first of its own counts again.
    """
    going, found = set(outcomes), list[tuple[Taken, int | None]]()
    for key, at, episode, episode_id in sorted(fetched_for(connection, _CURRENT, sorted(going))):
        first, older = key, connection.execute(_OLDER, (episode, at)).fetchone()
        while older is not None and older[0] in going:
            first, older = older[0], connection.execute(_OLDER, (episode, older[1])).fetchone()
        if older is not None:
            taken = _taken(connection, episode_id, current=key, first=first, replaced=older[0])
            found.append((taken, older[2]))
    return _with_flags(connection, found)


def _taken(connection: Connection, episode_id: str, *, current: int, first: int, replaced: int) -> Taken:
    rows = fetched_for(connection, _VERDICTS, [first])
    verdict = Taken(key=0, id="", kind="reward", subject=episode_id) if not rows else _verdict(rows[0])
    before = actions.replaced_outcome(connection, replaced)
    return replace(verdict, key=0, id="", outcome=current, replaced=replaced, before=before)


def _with_flags(connection: Connection, found: Sequence[tuple[Taken, int | None]]) -> list[tuple[Taken, int | None]]:
    """Add the ids of cases that were deleted when their outcome was replaced to what ``coming_back`` found.

    Whether a person had pinned or hidden these cases is added as well.
    """
    gone = dict(fetched_for(connection, _GONE, [case for taken, case in found if case is not None and taken.hid is None]))

    def flag(case_id: str, on: str, off: str) -> bool:
        row = connection.execute(f"{_FLAG} ORDER BY key DESC LIMIT 1", (case_id, on, off)).fetchone()
        return row is not None and row[0] == on

    return [
        (
            replace(
                taken, hid=case_id, deleted=True, pinned=flag(case_id, "pin", "unpin"), hidden=flag(case_id, "hide", "unhide")
            )
            if taken.hid is None and (case_id := gone.get(case)) is not None
            else taken,
            case,
        )
        for taken, case in found
    ]


def _verdict(row: Sequence[Any]) -> Taken:
    """Build a ``Taken`` from the row of a verdict in the audit log."""
    counts, made, hid, key, entry, subject = row
    return Taken(key=key, id=entry, kind="verdict", subject=subject, made=made, hid=hid, **noted_of_cases(_names(counts)))


def _names(counts: object) -> dict[str, Any]:
    """Return the counts of an audit entry by name; empty if they cannot be read, since an edited row may hold anything."""
    try:
        found = json.loads(str(counts))
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


@interruptible
def _all_or_nothing(connection: Connection) -> Generator[None, None, None]:
    """Undo all changes of the ``with`` block if one fails with an error of ``_ODD``, which is raised again.

    The caller then goes on without them: an edited row must not keep a source from being undone.
    """
    connection.execute("SAVEPOINT one_of_many")
    try:
        yield
    except _ODD:
        connection.execute("ROLLBACK TO SAVEPOINT one_of_many")
        raise
    finally:
        connection.execute("RELEASE SAVEPOINT one_of_many")


def take_back_verdicts(connection: Connection, namespace: int, outcomes: Iterable[int], by: str | None) -> None:
    """Take back what verdicts did to cases when they recorded these outcomes; the outcomes themselves stay.

    ``by`` is the actor whom the audit log names for this.
    """
    _show_again(connection, namespace, fetched_for(connection, _VERDICTS, sorted(outcomes)), by)


def _show_again(connection: Connection, namespace: int, rows: Iterable[Sequence[Any]], by: str | None) -> None:
    """Show the cases that verdicts hid, hide those that they showed; note in the audit log that verdicts were taken back."""
    for verdict in sorted(map(_verdict, rows), key=lambda one: -one.key):
        if verdict.hid is not None and not verdict.deleted:
            set_hidden(connection, namespace, verdict.hid, hidden=False)
        if verdict.made is not None and verdict.showed_again:
            set_hidden(connection, namespace, verdict.made, hidden=True)
        undo = NewAction(kind="undo", actor=by, takes_back=verdict)
        action_log.write(connection, namespace, undo, subject=verdict.subject)


def count_again(connection: Connection, new: Settlement) -> bool:
    """Let the older outcome ``new`` count again, with its case and its labels.

    Return False, with nothing changed, if that cannot be done as it was prepared.
    """
    taken = None if new.action is None else new.action.takes_back
    if taken is None or taken.outcome is None:
        return False
    query = "SELECT 1 FROM outcome WHERE key = ? AND withdrawn_at IS NOT NULL"
    if connection.execute(query, (taken.replaced,)).fetchone() is None:
        return False
    try:
        with _all_or_nothing(connection):
            _count_again(connection, new, taken)
    except _ODD:
        return False
    return True


def _count_again(connection: Connection, new: Settlement, taken: Taken) -> None:
    # Its case is looked at later: it stays if the older outcome verifies it as well.
    connection.execute("UPDATE outcome SET cases_key = NULL WHERE key = ?", (taken.outcome,))
    settled(connection, new, forgotten=True)
    (case,) = connection.execute("SELECT cases_key FROM outcome WHERE key = ?", (taken.replaced,)).fetchone()
    if case is not None:
        reconsider(connection, case)


def as_prepared(connection: Connection, outcomes: Iterable[int], again: Mapping[int, Settlement]) -> bool:
    """Say whether exactly the prepared outcomes would count again: the source may have reported more meanwhile."""
    now = {(taken.outcome, taken.replaced) for taken, _ in coming_back(connection, outcomes)}
    prepared = [new.action.takes_back for new in again.values() if new.action is not None]
    return now == {(one.outcome, one.replaced) for one in prepared if one is not None}


def decisions_of(connection: Connection, namespace: int, wanted: Wanted) -> list[str]:
    """Return the ids of what an actor decided (about cases, actors and what capabilities keep), the newest first.

    Empty if no actor is named, or if a channel is asked for: the audit log does not say through which channel a decision came.
    """
    if not wanted.actor or wanted.channel is not None:
        return []
    where, values = conditions(wanted, "action", "at")
    query = f"""SELECT id FROM action WHERE namespace = ? AND outcome IS NULL AND {_NOT_UNDONE} {where}
      AND kind IN ({", ".join(repr(kind) for kind in actions.ALL_UNDOABLE)}) ORDER BY key DESC"""
    return [str(entry) for (entry,) in connection.execute(query, (namespace, *values)).fetchall()]


def take_back(connection: Connection, namespace: int, entry_ids: Iterable[str], by: str | None) -> int:
    """Take decisions back, unless somebody has decided anew since; return how many were taken back.

    The case that a correction has stored is deleted elsewhere, with the other cases that its actor has added.
    """
    done = 0
    for entry_id in entry_ids:
        corrections = connection.execute(f"{_VERDICT} AND id = ? AND kind = 'correct'", (entry_id,)).fetchall()
        if corrections:
            _show_again(connection, namespace, corrections, by)
        else:
            try:
                with _all_or_nothing(connection):
                    taken = actions.taken(connection, namespace, entry_id)
                    actions.take_back(connection, namespace, NewAction(kind="undo", actor=by, takes_back=taken))
            except _ODD:
                continue
        done += 1
    return done
