"""What sources do in a transaction: take back a decision about an actor, and apply the decisions that an import brought."""

from __future__ import annotations

from cascade_memory.capabilities.sources.tables import DECISIONS, KINDS, QUARANTINED
from cascade_memory.domain.actions import NewAction, Taken
from cascade_memory.domain.records import UNHIDDEN
from cascade_memory.ledger import Connection, Observer, action_log
from cascade_memory.ledger.case_states import set_held
from cascade_memory.ledger.rows import note

_DECIDED = f"""SELECT action.subject, {QUARANTINED} FROM action
  WHERE action.namespace = ? AND action.subject IS NOT NULL AND {DECISIONS} ORDER BY action.key"""


def decided_about(connection: Connection, namespace: int) -> dict[str, bool]:
    """Return the last decision about each actor: True if the actor is in quarantine, False if not."""
    return {str(actor): bool(bad) for actor, bad in connection.execute(_DECIDED, (namespace,)).fetchall()}


class Decisions(Observer):
    """Moves cases into quarantine and out of it when a decision is taken back or imported."""

    kinds = KINDS

    def take_back(self, tx: Connection, namespace: int, action: NewAction, taken: Taken) -> None:
        """Take back a quarantine or a release: what was decided before counts again."""
        action_log.write(tx, namespace, action, subject=taken.subject)
        held = decided_about(tx, namespace).get(taken.subject, False)
        set_held(tx, namespace, taken.subject, held=held)

    def on_import_ended(self, tx: Connection, namespace: int, *, of_audit: bool) -> None:
        """Apply the last decisions to all cases.

        Processes that have the memory open read in the log which cases are hidden and shown, and that decisions were imported.
        """
        for actor, held in sorted(decided_about(tx, namespace).items()):
            set_held(tx, namespace, actor, held=held, tells=False)
        if of_audit:
            note(tx, namespace, UNHIDDEN, 0)  # a decision that was taken back may be gone, and have hidden no case


OBSERVER = Decisions()
