"""What an episode costs, counted and not timed: the bounds may only go down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_BOUNDS = {  # statements, calls
    "a recall": (9, 190),
    "a reward": (17, 221),
    "an episode that is learned from": (28, 490),
}


@pytest.mark.slow
def test_no_episode_costs_more():
    script = Path(__file__).parent / "costs.py"
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == len(_BOUNDS)
    for line in said:
        name, counts = line.split(": ")
        statements, calls = (int(part.split()[0]) for part in counts.split(", "))
        assert statements <= _BOUNDS[name][0], line
        assert calls <= _BOUNDS[name][1], line
