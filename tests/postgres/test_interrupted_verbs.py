"""Interrupted at any moment of any verb, a memory in a database loses nothing and locks nobody out."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from intensity import times

MOMENTS = times(newcomer=60, ci=60, matrix=1_000)
_TORTURE = Path(__file__).parents[1] / "torture" / "interrupts.py"

pytestmark = [
    pytest.mark.timeout(14_400),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs alarms"),
]


def test_nothing_is_lost_locked_or_half_done(new_database: Callable[[], str]):
    command = [sys.executable, str(_TORTURE), "--place", new_database(), "--moments", str(MOMENTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    summary = json.loads(done.stdout)
    assert summary["wrong"] == {}
    assert summary["moments"] >= MOMENTS
    assert done.returncode == 0
