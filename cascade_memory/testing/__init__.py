"""For authors of new parts (an embedder, a ledger, ...): contract tests for every port, and simple parts for use in tests.

from cascade_memory.testing import EmbedderContract

class TestMyEmbedder(EmbedderContract):
    def make(self):
        return MyEmbedder()
"""

from cascade_memory.encoders import HashingEmbedder
from cascade_memory.stores import ExactIndex
from cascade_memory.testing.embedder import EmbedderContract, SolutionMatcherContract
from cascade_memory.testing.index import CaseIndexContract
from cascade_memory.testing.ledger import LedgerContract, ledger_in_ram
from cascade_memory.testing.ledger_cases import LedgerCasesContract, LedgerEpisodesContract
from cascade_memory.testing.ledger_core import LedgerCoreContract
from cascade_memory.testing.ledger_forgetting import LedgerExpiryContract, LedgerForgettingContract
from cascade_memory.testing.ledger_lessons import LedgerInsightContract, LedgerLessonsContract
from cascade_memory.testing.ledger_maintenance import LedgerArchiveContract, LedgerFactsContract, LedgerMaintenanceContract
from cascade_memory.testing.mirror import CaseMirrorContract, MirrorInRam
from cascade_memory.testing.pair_encoder import PairEncoderContract
from cascade_memory.testing.policy import PolicyContract

__all__ = [
    "CaseIndexContract",
    "CaseMirrorContract",
    "EmbedderContract",
    "ExactIndex",
    "HashingEmbedder",
    "LedgerArchiveContract",
    "LedgerCasesContract",
    "LedgerContract",
    "LedgerCoreContract",
    "LedgerEpisodesContract",
    "LedgerExpiryContract",
    "LedgerFactsContract",
    "LedgerForgettingContract",
    "LedgerInsightContract",
    "LedgerLessonsContract",
    "LedgerMaintenanceContract",
    "MirrorInRam",
    "PairEncoderContract",
    "PolicyContract",
    "SolutionMatcherContract",
    "ledger_in_ram",
]
