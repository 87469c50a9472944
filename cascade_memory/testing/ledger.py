"""What every ``Ledger`` must do, its core and each of its parts."""

from __future__ import annotations

from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.testing.ledger_cases import LedgerCasesContract, LedgerEpisodesContract
from cascade_memory.testing.ledger_core import LedgerCoreContract
from cascade_memory.testing.ledger_forgetting import LedgerExpiryContract, LedgerForgettingContract
from cascade_memory.testing.ledger_lessons import LedgerInsightContract, LedgerLessonsContract
from cascade_memory.testing.ledger_maintenance import LedgerArchiveContract, LedgerFactsContract, LedgerMaintenanceContract


def ledger_in_ram() -> SQLiteLedger:
    """Return an empty ledger that vanishes with the process."""
    return SQLiteLedger(None)


class LedgerContract(
    LedgerCoreContract,
    LedgerFactsContract,
    LedgerCasesContract,
    LedgerEpisodesContract,
    LedgerLessonsContract,
    LedgerForgettingContract,
    LedgerExpiryContract,
    LedgerInsightContract,
    LedgerMaintenanceContract,
    LedgerArchiveContract,
):
    """Subclass it, return a fresh empty ledger from ``make``, and let pytest collect it.

    A ledger that can hold rows that belong to nothing says in ``tear`` how such rows come about, and one that can be read where
    it cannot be written says in ``unwritable`` how that comes about.
    """
