"""A full disk and a read-only folder: everything can be read, and nothing is said to be stored that is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import small_disk

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not small_disk.possible(), reason="needs to mount a tmpfs in a namespace of its own"),
]
_HELPER = Path(__file__).parents[1] / "helpers" / "unwritable.py"
_DEADLINE, _SLACK = 0.5, 1.5


def _tried(place: Path, kind: str, when: str) -> dict[str, Any]:
    command, more = small_disk.wrapped([sys.executable, str(_HELPER), str(place / "disk"), kind, when])
    done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_folder_that_cannot_be_written_is_opened_read_and_written_again_when_it_can(tmp_path: Path, kind: str):
    found = _tried(tmp_path, kind, "closed")
    assert found["agreed"]
    assert found["with cases"] == 30
    assert found["waited"][-1] < _DEADLINE + _SLACK
    assert "reward will be ignored" in found["errors"][0]
    assert found["reward of unrecorded"] is None
    assert "can only be read at the moment" in found["add"]
    assert (found["search"], found["get"], found["cases"]) == (1, "solution 1", 20)
    assert found["exported"] > 60
    assert "ledger" in found["doctor"]
    assert found["health"][0] is False
    assert found["health"][1]
    assert found["written again"]
    assert found["rewarded again"]
    assert found["health then"] is None
    assert found["stored"] == ["a task"]


@pytest.mark.slow
def test_a_disk_that_fills_while_a_memory_is_open_costs_no_recall_its_cases(tmp_path: Path):
    found = _tried(tmp_path, "full", "open")
    assert found["with cases"] == 30
    assert found["waited"][-1] < _DEADLINE + _SLACK
    assert "no room left" in found["add"]
    assert (found["search"], found["get"], found["cases"]) == (1, "solution 1", 20)
    assert found["written again"]
    assert found["stored"] == ["a task"]
