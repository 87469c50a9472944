"""The part of the ledger that does what people decide about cases, reads the audit log, and takes actions back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cascade_memory.domain.actions import OPPOSITE, UNDOABLE, AuditEntry, Before, NewAction, Taken, group_of
from cascade_memory.domain.records import Column, Doubt, NewCase
from cascade_memory.errors import UndoRefused, UnknownCase
from cascade_memory.ledger import action_log, cases
from cascade_memory.ledger.case_states import set_hidden, set_pinned
from cascade_memory.ledger.compaction import NUMBERS
from cascade_memory.ledger.database import Connection, Database
from cascade_memory.ledger.declaring import UNDONE
from cascade_memory.ledger.events import OBSERVERS
from cascade_memory.ledger.rows import (
    check_columns,
    fetched,
    metadata_if_readable,
    solution_if_readable,
    unpack_floats,
    unpack_ints,
    usable,
)
from cascade_memory.ledger.rules import counts_of
from cascade_memory.ledger.schema import ACTIONS
from cascade_memory.ledger.verdicts import SHOWN_AGAIN, check_as_seen, noted_of_cases, reopen
from cascade_memory.ledger.verifications import reconsider

_VERIFIED = "verifications"  # the name of a count: the case that replaced another one was there before


def _among(kinds: Sequence[str]) -> str:
    return f"({', '.join(repr(kind) for kind in kinds)})"


ALL_UNDOABLE = (*UNDOABLE, *ACTIONS)
_GROUPS = sorted({*(group_of(kind) for kind in UNDOABLE), *(kind.group for kind in ACTIONS.values())})
_SAME_GROUP = " OR ".join(f"(action.kind IN {_among(one)} AND later.kind IN {_among(one)})" for one in _GROUPS)
# Whether what an action did is as it left it.
_OWN = "".join(f"WHEN action.kind = '{kind.name}' THEN {kind.stands} " for kind in ACTIONS.values())
_STANDS = f"""CASE {_OWN}
  WHEN action.outcome IS NOT NULL
    THEN EXISTS (SELECT 1 FROM outcome WHERE outcome.key = action.outcome AND outcome.withdrawn_at IS NULL)
  WHEN action.made IS NOT NULL
    THEN EXISTS (SELECT 1 FROM cases WHERE cases.id = action.made
      AND (action.counts NOT LIKE '%"cases": %' OR (cases.copies = 1 AND cases.episode IS NULL)))
  ELSE EXISTS (SELECT 1 FROM cases WHERE cases.id = action.subject) END"""
# The plus signs let SQLite look up the few entries about a subject: by key, it would go through all later ones for each entry.
_LATER = f"""EXISTS (SELECT 1 FROM action AS later
  WHERE later.subject IN (action.subject, action.made) AND +later.key > action.key
  AND +later.namespace = action.namespace AND ({_SAME_GROUP})
  AND NOT EXISTS (SELECT 1 FROM action AS taken WHERE taken.undoes = later.key))"""
_COLUMNS = f"""action.key, action.id, action.at, namespace.name, action.actor, action.kind, action.subject, action.counts,
  action.note, action.made, action.hid, (SELECT undone.id FROM action AS undone WHERE undone.key = action.undoes), {UNDONE},
  action.kind IN {_among(ALL_UNDOABLE)} AND NOT {UNDONE} AND {_STANDS} AND NOT {_LATER}, action.outcome, action.replaced"""
_SELECT = f"SELECT {_COLUMNS} FROM action LEFT JOIN namespace ON namespace.id = action.namespace"
_WAITING = """SELECT episode.id, recall.shown, recall.baseline, recall.numbers, recall.groups, recall.chosen FROM episode
  LEFT JOIN attempt ON attempt.episode = episode.key
  LEFT JOIN recall ON recall.key = (SELECT max(latest.key) FROM recall AS latest
                                    WHERE latest.episode = episode.key AND latest.kind = 'recall')
  WHERE episode.namespace = ? AND ((episode.status = 'settled' AND episode.source = 'agent')
    OR (episode.status = 'open' AND attempt.status <> 'interrupted')) ORDER BY episode.key"""


class SQLActions:
    """Pins and hides cases, replaces them, takes actions back, and reads the audit log."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def flag(self, namespace: int, case_id: str, action: NewAction) -> bool:
        """Pin, unpin, hide or show a case, as the action says; return whether that changed it. Raises ``UnknownCase``."""
        with self._connections.write(durable=True) as connection:
            if not _flag(connection, namespace, case_id, action.kind):
                return False
            action_log.write(connection, namespace, action, subject=case_id)
            return True

    def replace(self, old: str, new: NewCase, action: NewAction) -> str:
        """Store a case in place of another one, which is hidden; return the new one's id. Raises ``UnknownCase``."""
        with self._connections.write(durable=True, brings_vectors=True) as connection:
            check_as_seen(connection, new.namespace, action)
            _, made, is_new = cases.insert(connection, new)
            counts = {"cases" if is_new else _VERIFIED: 1}
            hid = old if old != made and _flag(connection, new.namespace, old, "hide") else None
            if set_hidden(connection, new.namespace, made, hidden=False):
                counts[SHOWN_AGAIN] = 1
            action_log.write(connection, new.namespace, action, subject=old, counts=counts, made=made, hid=hid)
        return made

    def page(
        self, namespace: int | None, limit: int, *, after: int | None = None, newest_first: bool = False
    ) -> list[tuple[int, AuditEntry]]:
        """Return the next ``limit`` entries of the audit log after the key ``after``, each with its key, oldest first.

        They are the entries of a namespace (None: of every namespace) and those of the ledger as a whole. With
        ``newest_first``, the order is reversed: the entries are those before the key ``after``.
        """
        compared, order, start = ("<", "DESC", 2**62) if newest_first else (">", "ASC", 0)
        where, values = ("", ()) if namespace is None else ("namespace IN (0, ?) AND", (namespace,))
        # Keys first: what else is asked about an entry is asked of those on the page only.
        keys = f"SELECT key FROM action WHERE {where} key {compared} ? ORDER BY key {order} LIMIT ?"
        query = f"{_SELECT} WHERE action.key IN ({keys}) ORDER BY action.key {order}"
        with self._connections.read() as connection:
            rows = fetched(connection, query, (*values, start if after is None else after, limit))
        return usable(rows, lambda row: (int(row[0]), _entry(row)))

    def taken(self, namespace: int, entry_id: str) -> Taken:
        """Return the action of an audit log entry, so that it can be taken back.

        Raises ``UndoRefused`` if it may not be taken back, or if there is no such entry.
        """
        with self._connections.read() as connection:
            return taken(connection, namespace, entry_id)

    def undo(self, namespace: int, action: NewAction) -> None:
        """Take back ``action.takes_back``, which did not replace an outcome; raise if it can no longer be taken back."""
        assert action.takes_back is not None
        with self._connections.write(durable=True) as connection:
            now = taken(connection, namespace, action.takes_back.id)  # again: somebody else may have been faster
            take_back(connection, namespace, replace(action, takes_back=now))

    def doubts(self, namespace: int) -> list[Doubt]:
        """Return what was predicted for each episode that waits for a verdict, from its latest recall; oldest episode first."""
        with self._connections.read() as connection:
            rows = connection.execute(_WAITING, (namespace,)).fetchall()
        return usable(rows, _doubt)


def take_back(connection: Connection, namespace: int, action: NewAction) -> None:
    """Take back ``action.takes_back``, an action that did not replace an outcome.

    Raise if what that action changed has been changed again since.
    """
    before = action.takes_back
    assert before is not None
    if before.is_verdict:
        reopen(connection, namespace, action, before)
        return
    if before.kind in ACTIONS:
        next(one for one in OBSERVERS if before.kind in one.kinds).take_back(connection, namespace, action, before)
        return
    if before.kind == "correct":
        _give_up(connection, namespace, before)
    elif not _flag(connection, namespace, before.subject, OPPOSITE[before.kind]):
        raise UndoRefused(f"case {before.subject!r} is not as this action left it: nothing was changed")
    action_log.write(connection, namespace, action, subject=before.subject)


def _flag(connection: Connection, namespace: int, case_id: str, kind: str) -> bool:
    known = connection.execute("SELECT key FROM cases WHERE id = ? AND namespace = ?", (case_id, namespace)).fetchone()
    if known is None:
        raise UnknownCase(f"there is no case {case_id!r} in this namespace; an expired one can be brought back first")
    if kind in ("hide", "unhide"):
        return set_hidden(connection, namespace, case_id, hidden=kind == "hide")
    return set_pinned(connection, known[0], pinned=kind == "pin")


def _give_up(connection: Connection, namespace: int, taken: Taken) -> None:
    """Undo a person's replacement of a case by a new one: delete the new case, and show the old one again.

    If the new case existed before, it stays: only the verification is deleted that the person has added to it.
    """
    row = connection.execute("SELECT key FROM cases WHERE id = ? AND namespace = ?", (taken.made, namespace)).fetchone()
    if taken.stored:
        cases.delete(connection, row[0])
    else:
        _unverify(connection, row[0], taken)
    if taken.made is not None and taken.showed_again:
        set_hidden(connection, namespace, taken.made, hidden=True)
    if taken.hid is not None:
        set_hidden(connection, namespace, taken.hid, hidden=False)


def _unverify(connection: Connection, key: int, taken: Taken) -> None:
    """Delete the addition by hand that the action ``taken`` made to a case; raise if it is gone."""
    added = connection.execute(
        """SELECT key FROM addition WHERE cases_key = ? AND source = 'human' AND at <= (SELECT at FROM action WHERE key = ?)
           ORDER BY at DESC, key DESC LIMIT 1""",
        (key, taken.key),
    ).fetchone()
    if added is None:
        raise UndoRefused("what this action added is gone: nothing was changed")
    connection.execute("DELETE FROM addition_field WHERE addition = ?", (added[0],))
    connection.execute("DELETE FROM addition WHERE key = ?", (added[0],))
    reconsider(connection, key)


def taken(connection: Connection, namespace: int, entry_id: str) -> Taken:
    """Return the action of an audit entry, to take it back; raise if that is not possible, or if there is no such entry."""
    rows = fetched(connection, f"{_SELECT} WHERE action.id = ? AND action.namespace = ?", (entry_id, namespace))
    if not rows:
        raise UndoRefused(f"the audit log of this namespace has no entry {entry_id!r}")
    row, entry = rows[0], _entry(rows[0])
    if not entry.can_undo or entry.subject is None:
        raise UndoRefused(f"the entry {entry_id!r} ({entry.action}) cannot be taken back: {entry.why_not}")
    return Taken(
        key=row[0],
        id=entry.id,
        kind=entry.action,
        subject=entry.subject,
        outcome=row[14],
        replaced=row[15],
        made=entry.made,
        hid=entry.hid,
        stored=_VERIFIED not in entry.counts,
        before=None if row[15] is None else replaced_outcome(connection, row[15]),
        **noted_of_cases(entry.counts),
    )


def replaced_outcome(connection: Connection, outcome: int) -> Before:
    """Return an outcome that another one has replaced; raise if it is gone."""
    row = connection.execute(
        """SELECT value, source, solution_kind, solution, agents_words, metadata, cases_key, unkept, at, actor, channel
           FROM outcome WHERE key = ? AND withdrawn_at IS NOT NULL""",
        (outcome,),
    ).fetchone()
    if row is None:
        raise UndoRefused("the older outcome is gone: nothing was changed")
    return Before(
        value=row[0],
        source=row[1],
        at=row[8],
        actor=row[9],
        channel=row[10],
        solution=solution_if_readable(row[2], row[3]),
        agents_words=bool(row[4]),
        metadata=metadata_if_readable(row[5]) if row[5] else {},
        retained=row[6] is not None,
        unkept=row[7],
    )


def _entry(row: Sequence[Any]) -> AuditEntry:
    _, entry_id, at, namespace, actor, kind, subject, counts, note, made, hid, undoes, undone, can_undo, *_ = row
    check_columns(texts=(entry_id, kind), maybe=(namespace, actor, subject, note, made, hid, undoes), moments=(at,))
    return AuditEntry(
        id=entry_id,
        at=at,
        namespace=namespace,
        actor=actor,
        action=kind,
        subject=subject,
        counts=counts_of(counts),
        note=note,
        made=made,
        hid=hid,
        can_undo=bool(can_undo),
        undone=bool(undone),
        undoes=undoes,
        done=ACTIONS[kind].done if kind in ACTIONS else "",
    )


def _doubt(row: Sequence[Any]) -> Doubt:
    episode_id, shown, baseline, numbers, groups, chosen = row
    table = unpack_floats(numbers or b"").reshape(-1, NUMBERS)
    places = unpack_ints(chosen or b"")
    predicted = math.nan if baseline is None else float(baseline)
    if shown and len(places) and len(table):
        predicted = float(table[places[0], Column.UTILITY])
    return Doubt(episode_id=episode_id, shown=bool(shown), predicted=predicted, groups=unpack_ints(groups or b""))
