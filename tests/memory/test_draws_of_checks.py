"""Chance decides anew in each episode whether to warn, also while nothing has come of it yet, and in every process."""

from __future__ import annotations

from pathlib import Path

import pytest
from warned import CALL, fail

from cascade_memory import CascadeMemory


def test_episodes_that_have_not_ended_draw_their_own_numbers():
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        fail(memory)
        warned: list[bool] = []
        for number in range(30):
            recall = memory.recall(f"task {number}")
            warned.append(memory.warnings.check(recall.episode_id, **CALL) is not None)
            memory.recall(f"other {number}").reward(1.0, source="env")  # learned from; the episode above goes on
        assert 20 <= sum(warned) < 30  # of 0.9 each


@pytest.mark.slow
def test_processes_that_each_check_once_do_not_draw_the_same_number(tmp_path: Path):
    warned: set[bool] = set()
    for number in range(90):  # nine of ten are warned
        with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
            if not number:
                fail(memory)
            warned.add(memory.warnings.check(memory.recall(f"task {number}").episode_id, **CALL) is not None)
        if len(warned) == 2:
            return
    assert warned == {True, False}
