"""A case that goes with its outcome and is stored anew: it keeps its id, and what people have decided about it.

That happens if the same outcome is reported again, and if a verdict is taken back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from cascade_memory.domain.actions import Taken
from cascade_memory.domain.records import NewCase
from cascade_memory.ledger.case_states import set_hidden, set_pinned
from cascade_memory.ledger.database import Connection


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
        (key,) = connection.execute("SELECT key FROM cases WHERE id = ?", (case_id,)).fetchone()
        set_pinned(connection, key, pinned=True)
    if before is not None and before.hidden:
        set_hidden(connection, namespace, case_id, hidden=True)


def is_there(connection: Connection, case_id: str) -> bool:
    """Tell whether there is a case with an id."""
    return connection.execute("SELECT 1 FROM cases WHERE id = ?", (case_id,)).fetchone() is not None
