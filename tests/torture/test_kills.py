"""Killed again and again, a memory has everything that it acknowledged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from intensity import times

ROUNDS = times(newcomer=8, ci=8, matrix=300)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(7_200),
    pytest.mark.skipif(not Path("/proc/self/cmdline").exists() or not hasattr(os, "fork"), reason="needs fork and /proc"),
]


@pytest.mark.slow
def test_everything_acknowledged_is_there_after_kills_at_any_moment(tmp_path: Path):
    # A process of its own: it forks, and this one has threads.
    command = [sys.executable, str(Path(__file__).with_name("kills.py")), "--folder", str(tmp_path), "--within", "0"]
    command += ["--rounds", str(ROUNDS), "--bulk-kills", str(times(newcomer=0, ci=0, matrix=10))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    summary = json.loads(done.stdout)
    assert (summary["missing"], summary["leftovers"]) == (0, 0), summary
    assert done.returncode == 0
    assert summary["rounds"] == ROUNDS
    assert summary["killed_while_saving"] >= 2, summary
    assert summary["facts_checked"] > 50
    assert summary["worst_first_recall_s"] < 10
