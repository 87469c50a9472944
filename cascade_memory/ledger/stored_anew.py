"""A case that goes with its outcome and is stored anew: it keeps its id, and what people have decided about it.

That happens if the same outcome is reported again, and if a verdict is taken back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from cascade_memory.domain.actions import Taken
from cascade_memory.domain.records import HIDDEN, UNHIDDEN, NewCase
from cascade_memory.ledger import cases
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.quarantine import BY_PERSON, DECIDED, QUARANTINED, follow


class Gone(NamedTuple):
    """A case that went, or may have gone, with its outcome."""

    id: str
    pinned: bool
    hidden: bool


def gone(case: NewCase, current: Mapping[str, Any] | None, taken: Taken | None) -> Gone | None:
    """Return the case that is stored anew: the one of the outcome that is replaced, or of the one that comes back."""
    if taken is not None:
        return Gone(taken.hid, taken.pinned, taken.hidden) if taken.deleted and taken.hid is not None else None
    if current is None or current["pair"] != case.pair_key:
        return None
    return Gone(current["case"], bool(current["pinned"]), bool(current["hidden"]))


def under_its_id(connection: Connection, case: NewCase, before: Gone | None) -> NewCase:
    """Give a case the id that it had, unless that is in use."""
    if before is None or is_there(connection, before.id):
        return case
    return dataclasses.replace(case, id=before.id)


def decide_again(connection: Connection, namespace: int, case_id: str, before: Gone | None) -> None:
    """Pin and hide a case as a person had done."""
    if before is not None and before.pinned:
        pinned = "UPDATE cases SET pinned = 1 WHERE id = ? AND namespace = ? RETURNING key"
        follow(connection, connection.execute(pinned, (case_id, namespace)).fetchone()[0])
    if before is not None and before.hidden:
        set_hidden(connection, namespace, case_id, hidden=True)


def is_there(connection: Connection, case_id: str) -> bool:
    """Tell whether there is a case with an id."""
    return connection.execute("SELECT 1 FROM cases WHERE id = ?", (case_id,)).fetchone() is not None


def set_hidden(connection: Connection, namespace: int, case_id: str, *, hidden: bool) -> bool:
    """Hide a case for a person, or take that back; return whether it changed anything. All processes read it in the log.

    A case whose author is in quarantine stays there either way; an older version may not have noted that of a hidden case.
    """
    changed = connection.execute(
        f"""UPDATE cases SET hidden = (hidden & {QUARANTINED} | {DECIDED}) + ?
            WHERE id = ? AND namespace = ? AND (hidden & {BY_PERSON}) <> ? RETURNING key, hidden""",
        (int(hidden), case_id, namespace, int(hidden)),
    ).fetchone()
    if changed is not None and not changed[1] & QUARANTINED:
        cases.note(connection, namespace, HIDDEN if hidden else UNHIDDEN, changed[0])
    return changed is not None
