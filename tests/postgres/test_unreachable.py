"""While the server is away the agent goes on, nothing that was acknowledged is lost, and afterwards all is as before."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster
from cluster import cluster as running
from inside import engine_of

from cascade_memory import CascadeMemory, Retention
from cascade_memory.errors import StoreError


@pytest.fixture
def server() -> Iterator[Cluster]:
    """A server of this test's own, since it is stopped."""
    with running() as server:
        yield server


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_server_that_is_away_stops_no_agent_and_loses_no_reward(server: Cluster, how: str):
    with CascadeMemory(server.new_database(), embedder="hashing") as memory:
        known = memory.recall("heat some cup")
        memory.reward(known.episode_id, 1.0, solution="use the microwave")
        waiting = memory.recall("heat some mug")
        server.stop(how)
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = memory.recall("heat some bowl")
            elsewhere = [memory.acting(namespace=name).recall("heat some bowl") for name in ("new", f"sk-{'a1B2c3D4' * 6}")]
        assert time.perf_counter() - began < 6
        assert not found.cases
        assert found.error is not None
        assert "the database" in found.error
        assert all("the database" in str(one.error) for one in elsewhere)  # a namespace that is not loaded
        with pytest.raises(StoreError, match="the database"):
            memory.reward(waiting.episode_id, 1.0, solution="use the oven")
        health = memory.health()
        assert not health.ok
        assert "the database" in str(health.last_error)
        server.start()
        assert memory.reward(waiting.episode_id, 1.0, solution="use the oven")
        assert memory.recall("heat some cup").cases
        health = memory.health()
        assert health.database == memory.data.place
        assert health.log_lag == 0


def test_the_lease_of_whoever_feeds_chroma_is_in_its_health(server: Cluster):
    import os

    with CascadeMemory(server.new_database(), embedder="hashing", chroma="http://127.0.0.1:9") as memory:
        assert str(os.getpid()) in memory.health().leases["feeding Chroma"]
        assert "feeding Chroma" in str(memory.health())


def test_a_memory_that_holds_leases_can_be_closed_while_the_server_is_away(server: Cluster):
    memory = CascadeMemory(
        server.new_database(), embedder="hashing", chroma="http://127.0.0.1:9", retention=Retention(max_cases=2)
    )
    for i in range(6):
        memory.add(f"task {i}", f"solution {i}")
    assert memory.health().leases
    server.stop("fast")
    memory.close()
    assert engine_of(memory).closed
    with pytest.raises(StoreError, match="the ledger is closed"):
        engine_of(memory).parts.ledger.head()
    server.start()


def _has_networks() -> bool:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    return subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not _has_networks(), reason="may not make a network of its own")
@pytest.mark.long
def test_a_network_that_ends_without_a_word_is_noticed_and_the_reward_can_be_repeated():
    program = Path(__file__).parents[1] / "helpers" / "db_vanished.py"
    done = subprocess.run(
        ["unshare", "--net", sys.executable, program], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["waited"] < 25
    assert "the database" in found["said"]
    assert found["found"] == ["use the microwave"]
