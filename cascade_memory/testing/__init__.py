"""For authors of new parts (an embedder, a policy, ...): contract tests for each, and simple parts for use in tests.

from cascade_memory.testing import EmbedderContract

class TestMyEmbedder(EmbedderContract):
    def make(self):
        return MyEmbedder()
"""

from cascade_memory.encoders import HashingEmbedder
from cascade_memory.stores import ExactIndex
from cascade_memory.testing.encoders import EmbedderContract, PairEncoderContract, SolutionMatcherContract
from cascade_memory.testing.index import CaseIndexContract, CaseMirrorContract, MirrorInRam
from cascade_memory.testing.ledger import LedgerContract, ledger_in_ram
from cascade_memory.testing.policy import PolicyContract

__all__ = [
    "CaseIndexContract",
    "CaseMirrorContract",
    "EmbedderContract",
    "ExactIndex",
    "HashingEmbedder",
    "LedgerContract",
    "MirrorInRam",
    "PairEncoderContract",
    "PolicyContract",
    "SolutionMatcherContract",
    "ledger_in_ram",
]
