"""Everything that ships passes the contract tests that are published for everybody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cascade_memory.bandit.light import LightPolicy
from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
from cascade_memory.bandit.neural_logucb import NeuralLogUCB
from cascade_memory.bandit.rivals import LinLogUCB, NeuralLinUCB, ThompsonSampling
from cascade_memory.bandit.similarity import FrozenHead, ShowNothing, SimilarityPolicy, UniformPolicy
from cascade_memory.encoders import minilm
from cascade_memory.encoders.light import LightEncoder
from cascade_memory.encoders.matchers import EmbeddingMatcher, ExactMatcher, FunctionMatcher
from cascade_memory.encoders.one_feature import CosineEncoder, RecencyEncoder
from cascade_memory.ledger import running
from cascade_memory.ledger.core import Ledger
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.ports.encoders import Candidates
from cascade_memory.stores.chroma import ChromaFolder
from cascade_memory.stores.index import TieredIndex
from cascade_memory.testing import (
    CaseIndexContract,
    CaseMirrorContract,
    EmbedderContract,
    ExactIndex,
    HashingEmbedder,
    LedgerContract,
    MirrorInRam,
    PairEncoderContract,
    PolicyContract,
    SolutionMatcherContract,
    ledger_in_ram,
)
from cascade_memory.testing.encoders import DIMENSION


class TestHashingEmbedder(EmbedderContract):
    def make(self):
        return HashingEmbedder(dimension=128)


@pytest.mark.skipif(not minilm.is_installed(), reason="needs the extra 'local'")
class TestMiniLMEmbedder(EmbedderContract):
    model = minilm.MiniLMEmbedder()

    def make(self):
        return self.model


class TestExactIndex(CaseIndexContract):
    def make(self, dimension):
        return ExactIndex(dimension)


class _BruteForce:
    """A bulk index that has seen the cases up to a key."""

    def __init__(self, covered: int) -> None:
        self.index: TieredIndex | None = None
        self.covered = covered

    def nearest(self, vector: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        assert self.index is not None
        return self.index.nearest(vector, k, among=np.arange(self.covered + 1))[0]


class TestTieredIndexWithoutBulk(CaseIndexContract):
    def make(self, dimension):
        return TieredIndex(dimension)


class TestTieredIndexWithBulkAndTail(CaseIndexContract):
    def make(self, dimension):
        bulk = _BruteForce(covered=25)
        bulk.index = TieredIndex(dimension, bulk, exact_limit=0)
        return bulk.index


class _SQLite(LedgerContract):
    """What SQLite's ledger cannot do to itself."""

    TTL = 1_000.0

    @pytest.fixture(autouse=True)
    def _patching(self, monkeypatch: pytest.MonkeyPatch):
        self._patch = monkeypatch

    def wait(self, seconds: float) -> None:
        moment = running.clock() + seconds
        self._patch.setattr(running, "clock", lambda: moment)

    def tear(self, ledger: Ledger) -> int:
        """Somebody has put in a case that is not there, and somebody who is not there had metadata."""
        assert isinstance(ledger, SQLiteLedger)
        with ledger.connections.write(durable=False) as connection:
            connection.execute("INSERT INTO addition VALUES (77, 1, 999, 'host', 0, '{}', NULL, NULL, NULL)")
            connection.execute("INSERT INTO addition_field VALUES (1, 'user', 'ann', 78)")
        return 2


class TestSQLiteLedgerInRam(_SQLite):
    def make(self):
        return ledger_in_ram()


class TestSQLiteLedgerOnDisk(_SQLite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path):
        self._path, self._made = tmp_path, []
        yield
        for ledger in self._made:
            ledger.close()

    def make(self):
        self._made.append(SQLiteLedger(self._path / f"{len(self._made)}.sqlite3"))
        return self._made[-1]

    def unwritable(self):
        before = self.make()
        before.namespace("default", create=True)
        before.close()
        self._patch.setattr("os.access", lambda *_: False)  # as the system says it to whoever is not root
        self._made.append(SQLiteLedger(before.path))
        return self._made[-1]


class TestMirrorInRam(CaseMirrorContract):
    def make(self):
        return MirrorInRam()


class TestChromaFolder(CaseMirrorContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path):
        self._path = tmp_path

    def make(self):
        return ChromaFolder(self._path / "chroma")


class TestLightPolicy(PolicyContract):
    def make(self):
        return LightPolicy(5)


@pytest.mark.slow
class TestLightPolicyWithoutHindsight(PolicyContract):
    def make(self):
        return LightPolicy(5, hindsight=False)


class TestNeuralLinLogUCB(PolicyContract):
    def make(self):
        return NeuralLinLogUCB(np.array([2.0, 0, 0, 0, 0]))


class TestNeuralLinLogUCBExact(PolicyContract):
    def make(self):
        return NeuralLinLogUCB(np.array([2.0, 0, 0, 0, 0]), refit="exact", form="sherman-morrison")


class TestLinLogUCB(PolicyContract):
    def make(self):
        return LinLogUCB(5)


class TestNeuralLinUCB(PolicyContract):
    def make(self):
        return NeuralLinUCB(np.array([2.0, 0, 0, 0, 0]))


class TestThompsonSampling(PolicyContract):
    def make(self):
        return ThompsonSampling(np.array([2.0, 0, 0, 0, 0]))


@pytest.mark.slow
class TestNeuralLogUCB(PolicyContract):
    def make(self):
        return NeuralLogUCB(5, samples=100)  # with a thousand, the contract takes a minute


class TestShowNothing(PolicyContract):
    learns = False

    def make(self):
        return ShowNothing()


class TestFrozenHead(PolicyContract):
    learns = False

    def make(self):
        return FrozenHead(np.ones(5))


class TestSimilarityPolicy(PolicyContract):
    learns = False

    def make(self):
        return SimilarityPolicy()


class TestUniformPolicy(PolicyContract):
    learns = False

    def make(self):
        return UniformPolicy()


class TestLightEncoder(PairEncoderContract):
    def make(self, cases: Candidates):
        return LightEncoder(DIMENSION, lambda keys: cases.vectors[np.asarray(keys) - 1])


class TestRecencyEncoder(PairEncoderContract):
    def make(self, cases: Candidates):
        return RecencyEncoder()


class TestCosineEncoder(PairEncoderContract):
    def make(self, cases: Candidates):
        return CosineEncoder()


class TestExactMatcher(SolutionMatcherContract):
    def make(self):
        return ExactMatcher()


class TestEmbeddingMatcher(SolutionMatcherContract):
    def make(self):
        return EmbeddingMatcher(HashingEmbedder())


class TestFunctionMatcher(SolutionMatcherContract):
    def make(self):
        return FunctionMatcher(lambda verified, stored: str(verified) == str(stored))
