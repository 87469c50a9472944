"""Writes the audit log, each entry in the transaction of the action that it is about, and checks its hash chain.

An entry never holds the text of a case. It has a digest of itself and of the entry before, which reveals changes. Older
versions wrote no digests, so entries before the first one that has a digest need none. A fact in the ledger says that there is
such a first entry: otherwise a ledger whose digests were all deleted would look like one of an older version.

Whoever can write the file can also compute all digests again, or delete that fact. So somebody who wants to be sure keeps the
last digest elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cascade_memory.domain.actions import NewAction
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.facts import fact
from cascade_memory.ledger.rows import SET_FACT, fetched
from cascade_memory.ledger.schema import ALL_COUNTED

BEGUN = "audit_sealed_from"  # a fact: the id of the first entry that got a digest, if any ever did
# What the digest of an entry is made of. The note is not among it: it is deleted with what it is about.
SEALED = ("id", "at", "namespace", "kind", "actor", "subject", "counts", "undoes", "outcome", "replaced", "made", "hid")
_AT_ONCE = 500
_MENDED = "audit_sealed_again"  # a fact


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
    """Append a row to the audit log, with the digest that links it to the entry before (see the top of this file).

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


def check_chain(connection: Connection) -> tuple[bool, str]:
    """Check the whole log; return whether every entry fits, and a sentence for people about the result."""
    mended = fact(connection, _MENDED)
    note = "" if mended is None else f" ({mended})"
    count = 0
    for key, row, fitting in _read_sealed(connection):
        if row["digest"] != fitting:
            return False, (
                f"the entry {str(row['id'])[:80]!r} (number {key}) does not fit the entries before it: it was changed, or one "
                f"before it is missing; compare it with a backup{note}"
            )
        count += 1
    if not count and fact(connection, BEGUN) is not None:
        said = "entries had digests, and none has one now: they were changed, or are missing; compare the log with a backup"
        return False, f"{said}{note}"
    if not count:
        return True, f"no entry has a digest{note}"
    last = last_digest(connection)
    return (
        True,
        f"{count:,} entries fit; the last digest is {last} (kept elsewhere, it shows whether entries are missing){note}",
    )


def seal_again(connection: Connection) -> str:
    """Compute the digests again, from the first entry on that does not fit; return a sentence for people about this.

    Unless every entry fits, the sentence is also stored as a fact, and ``verdict`` repeats it from then on.
    """
    changed: list[tuple[str, int]] = []
    first, before = None, None
    none_left = fact(connection, BEGUN) is not None and next(_read_sealed(connection), None) is None
    for key, row, fitting in _read_sealed(connection, all_of_them=none_left):
        if first is None and row["digest"] == fitting:
            before = fitting
            continue
        first = first or row["id"]
        before = digest_after(before, row)
        changed.append((before, key))
    if first is None and not none_left:
        return "every entry fits"
    if first is None:
        connection.execute("DELETE FROM meta WHERE key = ?", (BEGUN,))
    connection.executemany("UPDATE action SET digest = ? WHERE key = ?", changed)
    day = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    where = "with no entry left" if first is None else f"from the entry {str(first)[:80]!r} on"
    said = f"sealed again on {day} UTC {where}"
    connection.execute(SET_FACT, (_MENDED, said))
    return said


def _read_sealed(connection: Connection, *, all_of_them: bool = False) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield (key, row, the digest that the row should have), oldest first.

    The first ones are those of older versions, which wrote no digests: without ``all_of_them``, they are left out.
    """
    names = ("key", *SEALED, "digest")
    query = f"SELECT {', '.join(names)} FROM action WHERE key > ? ORDER BY key LIMIT {_AT_ONCE}"
    after, before, begun = -(2**62), None, all_of_them
    while rows := fetched(connection, query, (after,)):
        for values in rows:
            row: dict[str, Any] = dict(zip(names, values, strict=True))
            begun = begun or row["digest"] is not None
            if begun:
                yield row["key"], row, digest_after(before, row)
                before = row["digest"]
        after = rows[-1][0]
