"""Killed again and again, a memory has everything that it acknowledged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from intensity import times
from tortured import tortured

ROUNDS = times(newcomer=8, ci=8, matrix=300)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(7_200),
    pytest.mark.skipif(not Path("/proc/self/cmdline").exists() or not hasattr(os, "fork"), reason="needs fork and /proc"),
]


@pytest.mark.slow
def test_everything_acknowledged_is_there_after_kills_at_any_moment(tmp_path: Path):
    options = ("--within", 0, "--rounds", ROUNDS, "--bulk-kills", times(newcomer=0, ci=0, matrix=10))
    summary, status = tortured("kills.py", "--folder", tmp_path, *options)
    assert (summary["missing"], summary["leftovers"]) == (0, 0), summary
    assert status == 0
    assert summary["rounds"] == ROUNDS
    assert summary["killed_while_saving"] >= 2, summary
    assert summary["facts_checked"] > 50
    assert summary["worst_first_recall_s"] < 10
