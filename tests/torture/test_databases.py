"""Workers are killed, the server is restarted, holders of leases are paused: a database has everything that it acknowledged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psycopg")

from chroma_process import CHROMA
from cluster import programs

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed here"),
]


def test_everything_acknowledged_is_in_the_database_after_kills_restarts_and_pauses(tmp_path: Path):
    # A process of its own: it forks, and this one has threads.
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("databases.py")), "--folder", str(tmp_path)]
    command += ["--processes", "4", "--namespaces", "2", "--episodes", "100"]
    command += ["--kills", "6", "--restarts", "2", "--pauses", "2"]
    command += [] if CHROMA.exists() else ["--without-chroma"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    summary = json.loads(done.stdout)
    assert not summary["wrong"], summary
    assert done.returncode == 0, summary
    assert (summary["kills"], sum(summary["restarts"].values()), sum(summary["pauses"].values())) == (6, 2, 2)
    assert min(summary["acknowledged"].values()) >= 100
    assert summary["writes_under_a_lease"] > 10
