"""What every ``Ledger`` must do: the tests of its core and of all its parts together."""

from __future__ import annotations

from cascade_memory.ledger import SQLiteLedger
from cascade_memory.testing.ledger_actions import LedgerActionsContract
from cascade_memory.testing.ledger_cases import LedgerCasesContract, LedgerEpisodesContract
from cascade_memory.testing.ledger_core import LedgerCoreContract
from cascade_memory.testing.ledger_forgetting import LedgerExpiryContract, LedgerForgettingContract
from cascade_memory.testing.ledger_lessons import LedgerInsightContract, LedgerLessonsContract
from cascade_memory.testing.ledger_maintenance import LedgerArchiveContract, LedgerFactsContract, LedgerMaintenanceContract
from cascade_memory.testing.ledger_provenance import LedgerProvenanceContract
from cascade_memory.testing.ledger_tokens import LedgerTokensContract
from cascade_memory.testing.ledger_undo import LedgerEvictionContract, LedgerUndoContract
from cascade_memory.testing.ledger_viewing import LedgerViewingContract


def ledger_in_ram() -> SQLiteLedger:
    """Make an empty ledger in RAM."""
    return SQLiteLedger(None)


class LedgerContract(
    LedgerCoreContract,
    LedgerFactsContract,
    LedgerTokensContract,
    LedgerCasesContract,
    LedgerEpisodesContract,
    LedgerLessonsContract,
    LedgerForgettingContract,
    LedgerExpiryContract,
    LedgerInsightContract,
    LedgerMaintenanceContract,
    LedgerArchiveContract,
    LedgerViewingContract,
    LedgerActionsContract,
    LedgerProvenanceContract,
    LedgerEvictionContract,
    LedgerUndoContract,
):
    """The tests of a ``Ledger``: subclass this class, return one from ``make``, and let pytest collect the subclass.

    ``make`` returns a fresh empty ledger. Some situations need the help of the subclass: orphaned rows (``tear``), a ledger
    that can be read but not written (``unwritable``), and the passing of time (``wait``; on a busy machine choose a long
    ``TTL``, so that nothing expires early). ``now`` is the clock that dates what expires, and ``COPIES = False`` says that the
    database's own tools make the backups.
    """
