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

    What no ledger can do to itself a subclass may bring about: rows that belong to nothing (``tear``), a ledger that can be
    read and not be written (``unwritable``), and that time passes (``wait``, with a ``TTL`` that no busy machine reaches).
    """
