"""The states of a stored case, hidden and pinned: each change of ``cases.hidden`` and ``cases.pinned`` is made here.

``cases.hidden`` holds two facts, each as a bit: a person has hidden the case, and a capability holds the cases of its author
back. A case may be shown if neither is true, so the two can be set and removed in any order. A person decides the first. The
second follows from what the capability knows of the author (``schema.HOLDS``: for quarantine, from the audit log), and is
determined again whenever the case or that changes. The documentation draws the states (states.md); ``room`` sets cases aside
and brings them back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cascade_memory.domain.actions import Taken
from cascade_memory.domain.records import HIDDEN, UNHIDDEN, NewCase
from cascade_memory.domain.trust import GREATEST, LEVELS
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.rows import note
from cascade_memory.ledger.schema import HOLDS

BY_PERSON, HELD = 1, 2  # the bits of cases.hidden
# A person's word needs nobody's record: a case that a person has added, corrected to, or pinned has no author here.
AUTHOR = f"""CASE WHEN cases.source = 'human' OR cases.pinned = 1 OR cases.trust = {LEVELS["human"]} THEN NULL
  ELSE cases.actor END"""


def _bit(namespace: str, author: str) -> str:
    """Return the SQL for the second bit; ``namespace`` and ``author`` are SQL, too: the columns that hold the two."""
    return "0" if HOLDS is None else f"CASE WHEN {HOLDS(namespace, author)} THEN {HELD} ELSE 0 END"


# Of a case that is about to be stored; the parameters are its namespace and its author.
OF_NEW = f"(SELECT {_bit('new.namespace', 'new.author')} FROM (SELECT ? AS namespace, ? AS author) AS new)"
_OF_STORED = _bit("cases.namespace", AUTHOR)


def trust_of(level: int, shown: Sequence[int]) -> tuple[str, list[int]]:
    """Return the SQL of a case's trust, with its parameters.

    The trust is ``level``, but no more than that of any of the cases ``shown`` (their keys) that are still stored.
    """
    if not shown:
        return "?", [level]
    worse = f"SELECT min(trust) FROM cases WHERE key IN ({', '.join('?' * len(shown))}) AND trust < ?"
    return f"coalesce(({worse}), ?)", [*shown, level, level]


def author_of_new(actor: str | None, source: str, trust: int = 0) -> str | None:
    """Return the author of a case that is about to be stored, and so is not pinned yet; None if a person vouches for it."""
    return None if source == "human" or trust == LEVELS["human"] else actor


def follow(connection: Connection, key: int) -> None:
    """Determine again whether a case is held back; the log tells all processes of a change."""
    bits = f"hidden & {BY_PERSON}, hidden & {HELD}, {_OF_STORED}"
    row = connection.execute(f"SELECT namespace, {bits} FROM cases WHERE key = ?", (key,)).fetchone()
    if row is None or row[2] == row[3]:
        return
    namespace, by_person, _, held = row
    connection.execute("UPDATE cases SET hidden = ? WHERE key = ?", (by_person | held, key))
    if not by_person:
        note(connection, namespace, HIDDEN if held else UNHIDDEN, key)


def set_held(connection: Connection, namespace: int, actor: str, *, held: bool, tells: bool = True) -> int:
    """Hold an actor's cases back, or do so no longer; return how many that hides or shows. ``schema.HOLDS`` must agree.

    A line in the log of changes tells all processes about each of these cases. If there are none, a line is written only with
    ``tells``: what is known of the actor also applies to later cases.
    """
    author = f"AND {AUTHOR} IS NOT NULL" if held else ""
    change, before, kind = (f"| {HELD}", 0, HIDDEN) if held else (f"& {BY_PERSON}", HELD, UNHIDDEN)
    moved = connection.execute(
        f"""UPDATE cases SET hidden = hidden {change}
            WHERE namespace = ? AND actor = ? AND (hidden & {HELD}) = ? {author} RETURNING key, hidden""",
        (namespace, actor, before),
    ).fetchall()
    seen = sorted(key for key, hidden in moved if not hidden & BY_PERSON)
    for key in seen:
        note(connection, namespace, kind, key)
    if tells and not seen:
        note(connection, namespace, kind, 0)
    return len(seen)


def set_hidden(connection: Connection, namespace: int, case_id: str, *, hidden: bool) -> bool:
    """Hide a case because a person decided so, or undo that decision; return whether that changed anything.

    The log of changes tells all processes. A case that is held back stays so either way. An older version may not have noted
    that of a hidden case, so it is determined again here.
    """
    changed = connection.execute(
        f"""UPDATE cases SET hidden = (hidden & {HELD} | {_OF_STORED}) + ?
            WHERE id = ? AND namespace = ? AND (hidden & {BY_PERSON}) <> ? RETURNING key, hidden""",
        (int(hidden), case_id, namespace, int(hidden)),
    ).fetchone()
    if changed is not None and not changed[1] & HELD:
        note(connection, namespace, HIDDEN if hidden else UNHIDDEN, changed[0])
    return changed is not None


def set_pinned(connection: Connection, key: int, *, pinned: bool) -> bool:
    """Pin or unpin a case; return whether that changed anything.

    A person vouches for a pinned case: it is held back no longer.
    """
    query = "UPDATE cases SET pinned = ? WHERE key = ? AND pinned <> ?"
    changed = connection.execute(query, (int(pinned), key, int(pinned))).rowcount > 0
    follow(connection, key)
    return changed


# -- a case that goes with its outcome and is stored anew, since that is reported again or a verdict is taken back -----------


class Gone(NamedTuple):
    """A case that was deleted together with its outcome, or that may have been."""

    id: str
    pinned: bool
    hidden: bool
    trust: int = GREATEST  # the most that it may be trusted


def _gone(case: NewCase, current: Mapping[str, Any] | None, taken: Taken | None) -> Gone | None:
    """Return the earlier case that ``case`` stores anew; None if it stores none anew.

    It is the case of the outcome that is replaced (``current``) or, if a verdict is taken back (``taken``), the one that went
    with the outcome that counts again.
    """
    if taken is not None and taken.deleted and taken.hid is not None:
        return Gone(taken.hid, taken.pinned, taken.hidden, max(0, LEVELS.get(case.source, 0) - taken.lacked))
    if current is None or current["pair"] != case.pair_key:
        return None
    return Gone(current["case"], bool(current["pinned"]), bool(current["hidden"]))


def under_its_id(
    connection: Connection, case: NewCase, current: Mapping[str, Any] | None, taken: Taken | None
) -> tuple[NewCase, Gone | None]:
    """Return a case that is stored anew, with its old id unless that is in use, and the old case (None: there is none)."""
    before = _gone(case, current, taken)
    if before is None or is_there(connection, before.id):
        return case, before
    return dataclasses.replace(case, id=before.id), before


def decide_again(connection: Connection, namespace: int, case_id: str, before: Gone | None) -> None:
    """Pin and hide a case that is stored anew, as far as a person had done so before it was deleted; trust it no more."""
    if before is not None and before.trust < GREATEST:
        connection.execute("UPDATE cases SET trust = ? WHERE id = ? AND trust > ?", (before.trust, case_id, before.trust))
    if before is not None and before.pinned:
        (key,) = connection.execute("SELECT key FROM cases WHERE id = ?", (case_id,)).fetchone()
        set_pinned(connection, key, pinned=True)
    if before is not None and before.hidden:
        set_hidden(connection, namespace, case_id, hidden=True)


def is_there(connection: Connection, case_id: str) -> bool:
    """Tell whether there is a case with an id."""
    return connection.execute("SELECT 1 FROM cases WHERE id = ?", (case_id,)).fetchone() is not None
