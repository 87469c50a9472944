"""The hash chain of the audit log: each entry has a digest of itself and of the entry before, which reveals changes.

Older versions wrote no digests, so entries before the first one that has a digest need none. A fact in the ledger says that
there is such a first entry: otherwise a ledger whose digests were all deleted would look like one of an older version.

Whoever can write the file can also compute all digests again, or delete that fact. So somebody who wants to be sure keeps the
last digest elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from cascade_memory.ledger.action_log import BEGUN, SEALED, digest_after, last_digest
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.facts import fact
from cascade_memory.ledger.rows import SET_FACT, fetched

_AT_ONCE = 500
_MENDED = "audit_sealed_again"  # a fact


def verdict(connection: Connection) -> tuple[bool, str]:
    """Check the whole log; return whether every entry fits, and a sentence for people about the result."""
    mended = fact(connection, _MENDED)
    note = "" if mended is None else f" ({mended})"
    count = 0
    for key, row, fitting in _read(connection):
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
    none_left = fact(connection, BEGUN) is not None and next(_read(connection), None) is None
    for key, row, fitting in _read(connection, all_of_them=none_left):
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


def _read(connection: Connection, *, all_of_them: bool = False) -> Iterator[tuple[int, dict[str, Any], str]]:
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
