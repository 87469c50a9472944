"""Ten thousand tenants fit into one process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import cluster

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


def _measured(tenants: int, *place: str) -> dict[str, object]:
    command = [sys.executable, str(Path(__file__).with_name("tenants.py")), "--tenants", str(tenants), *place]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_ten_thousand_tenants_stay_within_their_bounds(tmp_path: Path):
    found = _measured(10_000, "--folder", str(tmp_path))
    assert found["exceeded"] == {}, found
    assert not found["doctor_wrong"], found


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_nor_do_they_exceed_them_in_postgresql():
    with cluster() as server:
        found = _measured(10_000, "--url", server.new_database())
    assert found["exceeded"] == {}, found
    assert not found["doctor_wrong"], found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_three_hundred_tenants_keep_what_they_learned_in_the_same_bounds(tmp_path: Path):
    found = _measured(300, "--folder", str(tmp_path))
    slow = {"warm_ms", "let_go_ms", "close_s", "doctor_s"}  # on a busy machine
    assert set(found["exceeded"]) <= slow, found  # type: ignore[call-overload]
    assert not found["doctor_wrong"], found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_so_do_three_hundred_tenants_in_postgresql():
    with cluster() as server:
        found = _measured(300, "--url", server.new_database())
    slow = {"warm_ms", "let_go_ms", "close_s", "doctor_s"}  # on a busy machine
    assert set(found["exceeded"]) <= slow, found  # type: ignore[call-overload]
    assert not found["doctor_wrong"], found
