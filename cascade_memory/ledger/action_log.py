"""Writes the audit log: an entry in the transaction of what it is about. An entry never holds the text of a case."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from cascade_memory.domain.actions import NewAction
from cascade_memory.ledger.audit_chain import sealed
from cascade_memory.ledger.database import Connection


def write(
    connection: Connection,
    namespace: int,
    action: NewAction | None,
    *,
    subject: str | None = None,
    counts: Mapping[str, int] | None = None,
    outcome: int | None = None,
    replaced: int | None = None,
    made: str | None = None,
    hid: str | None = None,
) -> None:
    """Append an entry, if there is an action; one with counts that are all 0 changed nothing."""
    if action is None or (counts is not None and not any(counts.values())):
        return
    row = {
        **{"id": str(uuid.uuid4()), "at": time.time(), "namespace": namespace, "kind": action.kind, "actor": action.actor},
        **{"subject": subject, "counts": json.dumps({name: count for name, count in (counts or {}).items() if count})},
        **{"note": action.note, "undoes": None if action.takes_back is None else action.takes_back.key},
        **{"outcome": None if outcome is None else int(outcome), "replaced": replaced, "made": made, "hid": hid},
    }
    append(connection, row)


def append(connection: Connection, row: Mapping[str, Any]) -> None:
    """Append a row, with the digest that links it to the entry before."""
    values = sealed(connection, row)
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO action ({', '.join(values)}) VALUES ({marks})", list(values.values()))


def drop_notes(connection: Connection, ids: Sequence[str]) -> None:
    """Delete the notes on actions whose subject is forgotten: a person may have quoted it."""
    gone = set(ids)
    noted = connection.execute("SELECT key, subject, made, hid FROM action WHERE note IS NOT NULL").fetchall()  # few have one
    for key, *about in noted:
        if not gone.isdisjoint(about):
            connection.execute("UPDATE action SET note = NULL WHERE key = ?", (key,))
