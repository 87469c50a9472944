"""A read that is not used up yet goes on after another read of the same thread."""

from __future__ import annotations

from pathlib import Path

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory


@pytest.mark.parametrize("in_ram", [True, False])
def test_a_read_goes_on_after_another_one(in_ram: bool, tmp_path: Path):
    with CascadeMemory(None if in_ram else tmp_path, embedder="hashing") as memory:
        for n in range(40):
            memory.recall(f"task {n}").reward(1.0, solution="x")
        ledger = engine_of(memory).parts.ledger
        seen = [ledger.lessons.asked(one.lesson.key) for one in ledger.insight.judged(1)]
        assert len(seen) == 40
