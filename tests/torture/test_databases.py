"""Workers are killed, the server is restarted, holders of leases are paused: a database has everything that it acknowledged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("psycopg")

from chroma_process import CHROMA
from cluster import programs
from tortured import tortured

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed here"),
]


def test_everything_acknowledged_is_in_the_database_after_kills_restarts_and_pauses(tmp_path: Path):
    options = ["--processes", 4, "--namespaces", 2, "--episodes", 100, "--kills", 6, "--restarts", 2, "--pauses", 2]
    options += [] if CHROMA.exists() else ["--without-chroma"]
    summary, status = tortured("databases.py", "--folder", tmp_path, *options)
    assert not summary["wrong"], summary
    assert status == 0, summary
    assert (summary["kills"], sum(summary["restarts"].values()), sum(summary["pauses"].values())) == (6, 2, 2)
    assert min(summary["acknowledged"].values()) >= 100
    assert summary["writes_under_a_lease"] > 10
