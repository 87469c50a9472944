"""What ``serve mcp`` can be told: the embedder of a new memory, and what to log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mcp_clients import call, http, served

from cascade_memory import CascadeMemory
from cascade_memory.cli import main
from cascade_memory.encoders.hashing import HashingEmbedder


@pytest.mark.slow
async def test_a_new_memory_gets_the_embedder_and_the_log_says_what_happened(tmp_path: Path):
    with served(tmp_path / "memory", "--embedder", "hashing", "--log-level", "info") as (url, process):
        async with http(f"{url}/mcp") as session:
            found = await call(session, "recall_cases", query="SECRET: cool some mug")
            await call(session, "report_outcome", episode_id=found["episode_id"], reward=1.0, solution="SECRET: fridge")
        process.terminate()
        said = process.communicate(timeout=30)[1]
    with CascadeMemory(tmp_path / "memory", embedder="stored") as memory:
        assert memory.stats().embedder == "hashing-1:384"
    assert re.search(
        rf"INFO cascade_memory\S*: recall in namespace 'default': 0 of 0 shown, episode '{found['episode_id']}'", said
    )
    assert "reward 1 from agent in namespace 'default'" in said
    assert "SECRET" not in said


def test_an_unknown_embedder_is_refused_with_those_there_are(tmp_path: Path, capsys):
    assert main(["serve", "mcp", "--path", str(tmp_path / "memory"), "--embedder", "hashin"]) == 2
    assert '"hashing"' in capsys.readouterr().err


@pytest.mark.long
async def test_the_environment_names_the_embedder_of_new_memories_only(tmp_path: Path):
    with CascadeMemory(tmp_path / "old", embedder=HashingEmbedder(64)) as memory:
        memory.add("cool some mug", "fridge")
    for name, embedder in (("old", "hashing-1:64"), ("new", "hashing-1:384")):
        with served(tmp_path / name, CASCADE_MEMORY_EMBEDDER="hashing") as (url, _):
            async with http(f"{url}/mcp") as session:
                await call(session, "recall_cases", query="cool some mug")
        with CascadeMemory(tmp_path / name, embedder="stored") as memory:
            assert memory.stats().embedder == embedder
