"""Interrupted at any moment of any verb, a memory in a database loses nothing and locks nobody out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

MOMENTS = os.environ.get("INTERRUPTS", "60")  # for a torture, 20000
_TORTURE = Path(__file__).parents[1] / "torture" / "interrupts.py"

pytestmark = [
    pytest.mark.timeout(14_400),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs alarms"),
]


def test_nothing_is_lost_locked_or_half_done(new_database: Callable[[], str]):
    command = [sys.executable, str(_TORTURE), "--place", new_database(), "--moments", MOMENTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-3000:]
    summary = json.loads(done.stdout)
    assert summary["wrong"] == {}
    assert summary["moments"] >= int(MOMENTS)
    assert done.returncode == 0
