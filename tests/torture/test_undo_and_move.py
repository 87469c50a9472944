"""Killed while it undoes a source or moves to a database, a memory has done all of it or nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from intensity import times
from tortured import tortured

ROUNDS = times(newcomer=8, ci=8, matrix=60)

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(7_200),
    pytest.mark.skipif(not Path("/proc/self/cmdline").exists() or not hasattr(os, "fork"), reason="needs fork and /proc"),
]


@pytest.mark.parametrize("moves", [pytest.param(False, id="undo"), pytest.param(True, id="move", marks=pytest.mark.postgres)])
def test_all_of_it_or_nothing(moves: bool):
    summary, status = tortured("undo_and_move.py", "--rounds", ROUNDS, *([] if moves else ["--no-moves"]))
    assert status == 0, summary
    assert summary["killed before it said so"] >= 2, summary
