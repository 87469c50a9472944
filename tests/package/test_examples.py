"""The examples run, and show what they claim to show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(script: Path, *arguments: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, str(script), *arguments], cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_household_agent_learns_what_similarity_does_not(tmp_path: Path):
    printed = run(EXAMPLES / "household_agent.py", cwd=tmp_path)
    last = {
        name.strip(): int(fifths.split("%")[-2]) for name, fifths in re.findall(r"^  (\D+?)  +(\d.*%)$", printed, re.MULTILINE)
    }
    assert last["CASCADE"] >= last["most similar case"] + 30
    assert last["CASCADE"] >= last["no memory"] + 30


def test_the_llama_index_agent_learns(tmp_path: Path):
    pytest.importorskip("llama_index.core")
    printed = run(EXAMPLES / "llamaindex_agent.py", cwd=tmp_path)
    first, _, last = (int(share) for share in re.findall(r"(\d+)%", printed.splitlines()[-1]))
    assert last >= first + 10


def test_the_latency_benchmark_runs(tmp_path: Path):
    pytest.importorskip("langchain_chroma")
    printed = run(EXAMPLES / "benchmarks/latency.py", "--sizes", "300", "--times", "20", cwd=tmp_path)
    assert "a new case is recalled at once: True" in printed
    assert (tmp_path / "results/latency.jsonl").is_file()


@pytest.mark.parametrize("part", ["main", "ablation", "adversity"])
def test_the_learning_benchmark_runs(part: str, data: Path, tmp_path: Path):
    pytest.importorskip("torch")
    printed = run(
        EXAMPLES / "benchmarks/learning.py",
        *("--part", part, "--limit", "40", "--seeds", "1", "--streams", "RCA", "--jobs", "2"),
        cwd=tmp_path,
    )
    assert "SIMULATED solver" in printed
    assert "CASCADE" in printed
