"""What the block and the hook add to an agent, compared with LlamaIndex's own parts in the same run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_our_block_and_hook_cost_little_beside_what_llama_index_does_itself():
    script = Path(__file__).parents[2] / "examples/benchmarks/llama_index_overhead.py"
    worst: list[float] = []
    while not worst or (min(worst) > 1.25 and len(worst) < 4):  # a busy machine may need another try
        done = subprocess.run([sys.executable, script, "--times", "30"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        found = dict(re.findall(r"^(hook|block and hook|block)  .* to .*: ([\d.]+) times as much$", done.stdout, re.MULTILINE))
        assert len(found) == 3
        worst.append(max(float(one) for one in found.values()))
    assert min(worst) <= 1.25, worst
