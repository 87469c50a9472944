"""Writes the audit log: each entry is written in the transaction of the action that it is about.

An entry never holds the text of a case.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from cascade_memory.domain.actions import NewAction
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.rows import SET_FACT
from cascade_memory.ledger.schema import ALL_COUNTED

BEGUN = "audit_sealed_from"  # a fact: the id of the first entry that got a digest, if any ever did
# What the digest of an entry is made of. The note is not among it: it is deleted with what it is about.
SEALED = ("id", "at", "namespace", "kind", "actor", "subject", "counts", "undoes", "outcome", "replaced", "made", "hid")


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
) -> str | None:
    """Append an entry for ``action`` to the audit log, and return its id.

    If ``action`` is None, or if all ``counts`` are 0, nothing is appended, and None is returned.
    """
    if action is None or (counts is not None and not any(counts.values())):
        return None
    assert set(counts or ()) <= set(ALL_COUNTED), "an import would refuse the name of this count"
    entry_id = str(uuid.uuid4())
    row = {
        **{"id": entry_id, "at": time.time(), "namespace": namespace, "kind": action.kind, "actor": action.actor},
        **{"subject": subject, "counts": json.dumps({name: count for name, count in (counts or {}).items() if count})},
        **{"note": action.note, "undoes": None if action.takes_back is None else action.takes_back.key},
        **{"outcome": None if outcome is None else int(outcome), "replaced": replaced, "made": made, "hid": hid},
    }
    append(connection, row)
    return entry_id


def append(connection: Connection, row: Mapping[str, Any]) -> None:
    """Append a row to the audit log, with the digest that links it to the entry before (see ``audit_chain``).

    If the entry before has no digest, the id of this entry is stored as the fact ``BEGUN``.
    """
    before, values = last_digest(connection), {**dict.fromkeys(SEALED), **row}
    values["digest"] = digest_after(before, values)
    if before is None:
        connection.execute(SET_FACT, (BEGUN, values["id"]))
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO action ({', '.join(values)}) VALUES ({marks})", list(values.values()))


def digest_after(before: str | None, entry: Mapping[str, Any]) -> str:
    """Return the digest of an entry that follows one with the digest ``before`` (None: it is the first one).

    >>> entry = dict.fromkeys(SEALED)
    >>> len({digest_after(None, entry), digest_after("00", entry), digest_after(None, {**entry, "hid": "c"})})
    3
    """
    text = json.dumps([before, *(entry[name] for name in SEALED)], default=repr)  # an edited row may hold anything
    return hashlib.blake2b(text.encode(), digest_size=16, person=b"cascade-audit").hexdigest()


def last_digest(connection: Connection) -> str | None:
    """Return the digest of the last entry; None if the log is empty, or if that entry has no digest."""
    row = connection.execute("SELECT digest FROM action ORDER BY key DESC LIMIT 1").fetchone()
    return None if row is None else row[0]


def drop_notes(connection: Connection, ids: Sequence[str]) -> None:
    """Delete the notes of the audit entries about these ids, whose data was forgotten: a note may quote the forgotten text."""
    gone = set(ids)
    noted = connection.execute("SELECT key, subject, made, hid FROM action WHERE note IS NOT NULL").fetchall()  # few have one
    for key, *about in noted:
        if not gone.isdisjoint(about):
            connection.execute("UPDATE action SET note = NULL WHERE key = ?", (key,))
