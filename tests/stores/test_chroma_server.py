"""A Chroma server as the index: shared by processes and memories, gone for a while, or gone with everything it had."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from chroma_process import CHROMA, Server
from inside import engine_of, state_of

from cascade_memory import CascadeMemory
from cascade_memory.errors import InvalidInput, StoreError
from cascade_memory.memory.memory import Memory

_HELPERS = Path(__file__).parents[1] / "helpers"
pytestmark = [
    pytest.mark.slow,
    # Chroma leaves the connections of a client that could not connect to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.skipif(not CHROMA.exists(), reason="chromadb's command line is not installed"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path / "server")
    found.start()
    yield found
    found.stop()
    gc.collect()


def _open(folder: Path, server: Server, **options: object) -> CascadeMemory:
    return CascadeMemory(folder, embedder="hashing", learn="inline", chroma=server.url, **options)  # type: ignore[arg-type]


def _fed(memory: Memory) -> int:
    mirror = engine_of(memory).parts.mirror
    assert mirror is not None
    return mirror.count("default")


@pytest.mark.slow
def test_the_server_holds_every_case_and_nothing_stands_in_the_folder(tmp_path: Path, server: Server):
    with _open(tmp_path / "memory", server) as memory:
        memory.add([(f"task {i}", f"s{i}") for i in range(50)])
        memory.sync()
        assert _fed(memory) == 50
        case = memory.cases.search("task 7").cases[0].id
        memory.forget(case)
        memory.sync()
        assert _fed(memory) == 49
        assert all(check.ok for check in memory.data.examine())
        assert memory.health().chroma == "clean"
    assert not (tmp_path / "memory" / "chroma").exists()
    with _open(tmp_path / "memory", server) as memory:
        memory.sync()
        assert _fed(memory) == 49


@pytest.mark.slow
def test_two_memories_on_one_server_do_not_see_each_other(tmp_path: Path, server: Server):
    with _open(tmp_path / "one", server) as one, _open(tmp_path / "two", server) as two:
        one.add("q", "one's")
        two.add([("q", "two's"), ("r", "two's")])
        one.sync()
        two.sync()
        assert (_fed(one), _fed(two)) == (1, 2)
        one.data.backup(tmp_path / "copy")
        with _open(tmp_path / "copy", server) as copy:
            copy.add("another", "case")
            copy.sync()
            assert (_fed(one), _fed(copy)) == (1, 2)


@pytest.mark.slow
def test_recall_goes_on_while_the_server_is_away_and_feeding_catches_up(tmp_path: Path, server: Server, monkeypatch):
    monkeypatch.setattr("cascade_memory.stores.index.EXACT_LIMIT", 10)
    monkeypatch.setattr("cascade_memory.engine.mirror_feeder.WORTH_ASKING", 10)
    with _open(tmp_path / "memory", server) as memory:
        state_of(memory).index.exact_limit = 10
        memory.add([(f"task {i}", f"s{i}") for i in range(60)])
        memory.sync()
        assert engine_of(memory).feeder is not None
        assert engine_of(memory).feeder.covered  # recall asks the server now
        assert memory.cases.search("task 7").cases[0].solution == "s7"
        server.stop()
        began = time.perf_counter()
        for i in range(20):
            assert memory.cases.search(f"task {i}").cases[0].solution == f"s{i}"
        assert time.perf_counter() - began < 5
        memory.add("while it was away", "kept")
        with pytest.raises(StoreError, match="Nothing is lost"):
            memory.sync()
        assert memory.health().failures["chroma"] >= 1
        server.start()
        memory.sync()
        assert _fed(memory) == 61
        assert memory.cases.search("while it was away").cases[0].solution == "kept"


@pytest.mark.slow
def test_a_server_that_lost_everything_is_fed_again(tmp_path: Path, server: Server):
    with _open(tmp_path / "memory", server) as memory:
        memory.add([(f"task {i}", f"s{i}") for i in range(40)])
        memory.sync()
    server.stop()
    shutil.rmtree(server.folder)
    server.start()
    with _open(tmp_path / "memory", server) as memory:
        memory.sync()
        assert _fed(memory) == 40


@pytest.mark.slow
def test_a_server_that_is_not_there_does_not_keep_a_memory_from_opening(tmp_path: Path, server: Server):
    server.stop()
    began = time.perf_counter()
    with _open(tmp_path / "memory", server) as memory:
        memory.add("q", "s")
        assert memory.recall("q").cases[0].solution == "s"
        assert time.perf_counter() - began < 5


@pytest.mark.long
def test_a_follower_asks_the_server_too(tmp_path: Path, server: Server):
    script = textwrap.dedent(
        """
        import sys, time
        from cascade_memory import CascadeMemory
        from cascade_memory.engine import mirror_feeder as feeder
        sys.path.insert(0, sys.argv[3])
        from inside import engine_of, state_of
        feeder.WORTH_ASKING = 10
        with CascadeMemory(sys.argv[1], embedder="hashing", chroma=sys.argv[2]) as memory:
            state_of(memory).index.exact_limit = 10
            deadline = time.monotonic() + 30
            while not engine_of(memory).feeder.covered and time.monotonic() < deadline:
                time.sleep(0.05)
            asked = []
            mirror = engine_of(memory).parts.mirror
            nearest = mirror.nearest_ids
            mirror.nearest_ids = lambda *a: asked.append(1) or nearest(*a)
            print(memory.health().chroma, memory.cases.search("task 7").cases[0].solution, len(asked))
        """
    )
    with _open(tmp_path / "memory", server) as memory:
        memory.add([(f"task {i}", f"s{i}") for i in range(60)])
        memory.sync()
        arguments = [sys.executable, "-c", script, str(tmp_path / "memory"), server.url, str(_HELPERS)]
        ran = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
        assert ran.stdout.split() == ["follower", "s7", "1"], ran.stderr


@pytest.mark.slow
def test_a_purge_deletes_the_collections_and_says_what_is_the_servers_business(tmp_path: Path, server: Server):
    with _open(tmp_path / "memory", server) as memory:
        memory.add([("ann's secret", "s", {"user": "ann"}), ("bob's task", "t", {"user": "bob"})])
        memory.sync()
        receipt = memory.forget(where={"user": "ann"}, purge=True)
        assert not receipt.purged
        assert server.url in receipt.stale[0]
        memory.sync()
        assert _fed(memory) == 1
        engine_of(memory).parts.mirror.prepare("default", np.ones(384, np.float32))  # type: ignore[union-attr]
        found = engine_of(memory).parts.mirror.nearest_ids("default", np.ones(384, np.float32), 5)  # type: ignore[union-attr]
        assert found == [memory.cases.search("bob's task").cases[0].id]


@pytest.mark.long
def test_a_server_that_hangs_holds_nobody_up(tmp_path: Path, server: Server, monkeypatch):
    monkeypatch.setattr("cascade_memory.engine.mirror_feeder.WORTH_ASKING", 10)
    with _open(tmp_path / "memory", server) as memory:
        state_of(memory).index.exact_limit = 10
        memory.add([(f"task {i}", f"s{i}") for i in range(60)])
        memory.sync()
        mirror = engine_of(memory).parts.mirror
        assert mirror is not None
        mirror.timeout = 2.0  # type: ignore[attr-defined]
        mirror.prepare("default", np.ones(384, np.float32))
        server.pause()
        try:
            worst = 0.0
            for i in range(30):
                began = time.perf_counter()
                assert memory.cases.search(f"task {i}").cases[0].solution == f"s{i}"
                worst = max(worst, time.perf_counter() - began)
            assert worst < 3  # one recall waited for a second, nobody after it
            mirror.recover()
            memory.add("meanwhile", "kept")
            with pytest.raises(StoreError, match="Nothing is lost"):
                memory.sync()
        finally:
            server.resume()
        memory.sync()
        assert _fed(memory) == 61


def test_an_address_that_is_none_is_refused(tmp_path: Path):
    for address in (
        "localhost:8000",
        "http://",
        "ftp://host",
        "http://host:8000/path",
        "http://user:secret@host:8000",
        "http://h:x",
    ):
        with pytest.raises(InvalidInput, match="chroma"):
            CascadeMemory(tmp_path / "memory", embedder="hashing", chroma=address)
    with pytest.raises(InvalidInput, match="needs a path"):
        CascadeMemory(embedder="hashing", chroma="http://localhost:8000")
