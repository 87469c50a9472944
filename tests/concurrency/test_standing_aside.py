"""A process that only looks leaves Chroma to the agents, whoever came first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory

AGENT = """
import sys
from cascade_memory import CascadeMemory
with CascadeMemory(sys.argv[1], embedder="hashing") as memory:
    memory.add("heat some egg", "microwave it")
    memory.sync()
    print(memory.health().chroma, memory.recall("heat some egg").cases[0].solution)
"""


def agent(folder: Path) -> str:
    """Let another process own the folder's Chroma, and feed it."""
    done = subprocess.run([sys.executable, "-c", AGENT, str(folder)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_an_agent_that_comes_later_feeds_chroma(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing") as looking:
        looking.add("cool some mug", "put it into the fridge")
        looking.sync()
        looking.data.stand_aside()
        assert looking.health().chroma == "follower"
        for _ in range(2):  # it does not take over when the agent has gone
            state, _, solution = agent(folder).partition(" ")
            assert state in ("open", "clean")  # it owns Chroma
            assert solution == "microwave it"
            assert looking.recall("heat some egg").cases[0].solution == "microwave it"
            assert looking.health().chroma == "follower"
        assert looking.health().ok
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert all(check.ok for check in memory.data.examine())


@pytest.mark.slow
def test_standing_aside_it_purges_nevertheless(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing") as looking:
        case_id = looking.add("a secret task", "a secret solution")
        looking.sync()
        looking.data.stand_aside()
        receipt = looking.forget(case_id, purge=True)
        assert receipt.purged
        assert looking.health().chroma == "follower"
    assert not any(b"secret" in file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert agent(folder).endswith("microwave it")


def test_in_ram_there_is_nothing_to_leave():
    with CascadeMemory(embedder="hashing") as memory:
        memory.data.stand_aside()
        assert memory.health().ok
