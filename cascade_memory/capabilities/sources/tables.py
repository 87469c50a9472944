"""The actions that put actors into quarantine and release them, and whose cases are held back because of them."""

from __future__ import annotations

from cascade_memory.ledger import UNDONE, ActionKind

KINDS = ("quarantine", "release")
ACTIONS = (
    ActionKind(name="quarantine", done="in quarantine", group=KINDS, stands="action.subject IS NOT NULL", of_actor=True),
    ActionKind(name="release", done="released", group=KINDS, stands="action.subject IS NOT NULL", of_actor=True),
)
# To take a quarantine back is to release: a person overrules the record. A release that was taken back never was.
DECISIONS = f"action.kind IN ('quarantine', 'release') AND NOT (action.kind = 'release' AND {UNDONE})"
QUARANTINED = f"action.kind = 'quarantine' AND NOT {UNDONE}"


def holds(namespace: str, author: str) -> str:
    """Return the SQL that says whether the last decision about an author was a quarantine.

    ``namespace`` and ``author`` are SQL, too: the columns that hold the two.
    """
    return f"""coalesce((SELECT CASE WHEN {QUARANTINED} THEN 1 ELSE 0 END FROM action
      WHERE action.namespace = {namespace} AND action.subject = {author} AND {DECISIONS}
      ORDER BY action.key DESC LIMIT 1), 0) = 1"""
