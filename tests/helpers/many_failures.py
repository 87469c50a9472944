"""Stores many failures in a ledger, faster than by recalling and rewarding."""

from __future__ import annotations

import numpy as np

from cascade_memory.capabilities.warnings.records import Blame
from cascade_memory.ledger.core import Ledger
from cascade_memory.testing.ledger_material import LedgerMaterial

_LETTERS = "abcdefghij"


class _Records(LedgerMaterial):
    """Makes the rows of a ledger."""

    def fail(self, ledger: Ledger, number: int, vector: np.ndarray) -> None:
        episode, words = (
            f"failed {number}",
            ("from", "select", f"word_{_LETTERS[number % 10]}", f"x{_LETTERS[number // 10 % 10]}"),
        )
        ledger.record(self._recall(episode, query=f"task {number}", vector=vector))
        group = f"group {number % 100}-{number // 100 % 40}"
        blame = Blame(why="failed", tool="sql", action="select", happened="no such column", group=group, words=words)
        ledger.settle(self._settlement(episode, 0.0, at=2e9, found={"blame": blame}))


def fill(ledger: Ledger, count: int, *, dimension: int = 384) -> None:
    """Store failures of 4,000 warnings; a hundredth of these match any action that selects one column and one table."""
    vectors = np.random.default_rng(0).normal(size=(count, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for number in range(count):
        _Records().fail(ledger, number, vectors[number])
