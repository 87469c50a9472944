"""Ten thousand tenants fit into one process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


def _measured(folder: Path, tenants: int) -> dict[str, object]:
    command = [sys.executable, str(Path(__file__).with_name("tenants.py")), "--tenants", str(tenants), "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_ten_thousand_tenants_stay_within_their_bounds(tmp_path: Path):
    found = _measured(tmp_path, 10_000)
    assert found["exceeded"] == {}, found
    assert not found["doctor_wrong"], found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_three_hundred_tenants_keep_what_they_learned_in_the_same_bounds(tmp_path: Path):
    found = _measured(tmp_path, 300)
    slow = {"warm_ms", "let_go_ms", "close_s", "doctor_s"}  # on a busy machine
    assert set(found["exceeded"]) <= slow, found  # type: ignore[call-overload]
    assert not found["doctor_wrong"], found
