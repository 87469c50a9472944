"""Interrupted at any moment of any verb, a memory loses nothing and locks nobody out."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from intensity import times

MOMENTS = times(newcomer=40, ci=40, matrix=2_000)

pytestmark = [
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs alarms"),
]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["ram", pytest.param("disk", marks=pytest.mark.long)])
def test_nothing_is_lost_locked_or_half_done(place: str):
    command = [sys.executable, str(Path(__file__).with_name("interrupts.py")), "--place", place, "--moments", str(MOMENTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    summary = json.loads(done.stdout)
    assert summary["wrong"] == {}
    assert summary["moments"] >= MOMENTS
    assert done.returncode == 0
