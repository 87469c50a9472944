"""A folder has the vectors of one embedder: whoever works with another one is refused, whenever it changed."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from ack_writers import WRITERS, ProcessWriters, ThreadWriters, attempt
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, Retention
from cascade_memory.assembly import folder as folders
from cascade_memory.assembly import opened
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.assembly.reindex import reindex
from cascade_memory.cycle.retain import new_case
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.engine.embedding import embed_with, named
from cascade_memory.errors import EncoderMismatch, StoreError
from cascade_memory.ledger.sqlite import SQLiteLedger


class Slow(HashingEmbedder):
    """Another embedder of the same length, which takes its time: what is written meanwhile is written in between."""

    identity = "slow-1:384"

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(384)
        self.identity = "slow-1:384"
        self._seconds = seconds
        self.began = threading.Event()

    def embed(self, texts):
        self.began.set()
        time.sleep(self._seconds)
        return -super().embed(texts)


@pytest.fixture
def followers(tmp_path: Path) -> Iterator[ProcessWriters]:
    """Writers that have the folder open without owning it, as all processes but one have."""
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        memory.add([(f"old task {i}", f"solution {i}") for i in range(200)])
    lock = OwnerLock(folder / folders.LOCK)
    assert lock.try_acquire()
    writers = ProcessWriters(folder)
    writers.wait_until_all_write()
    yield writers
    writers.close()
    lock.release()


def _vectors(folder: Path) -> dict[str, tuple[str, np.ndarray]]:
    ledger = SQLiteLedger(folder / "ledger.sqlite3")
    try:
        return {case.id: (case.query, vector) for case, vector in ledger.cases.after(0, 1_000_000)}
    finally:
        ledger.close()


def _reindex_when_free(folder: Path, embedder: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Embed anew although others have the folder open: they are followers, whom the lock of the owner does not tell of."""
    monkeypatch.setattr("cascade_memory.assembly.reindex.OwnerLock.try_acquire", lambda _: True)
    reindex(folder, embedder, progress=False)


@pytest.mark.slow
def test_what_is_acknowledged_during_a_reindex_is_in_the_folder_with_the_new_vector(followers, tmp_path: Path, monkeypatch):
    folder = tmp_path / "memory"
    _reindex_when_free(folder, Slow(0.2), monkeypatch)
    moment = time.monotonic()
    followers.wait_for(0, refused=3 * WRITERS)
    said = followers.stop()
    assert said.acknowledged_after(moment) == []
    assert any("EncoderMismatch" in sentence for _, sentence in said.refused)
    stored = _vectors(folder)
    assert said.ids() <= set(stored)
    expected = embed_with(Slow(), [query for query, _ in stored.values()])
    np.testing.assert_allclose(np.stack([vector for _, vector in stored.values()]), expected, atol=1e-5)
    with CascadeMemory(folder, embedder=Slow(), learn="inline") as memory:
        assert memory.recall("old task 3").error is None
        wrong = [(check.name, check.detail) for check in memory.data.examine() if not check.ok]
        assert not wrong


def test_four_threads_that_opened_the_folder_before_are_refused_and_say_so(tmp_path: Path, monkeypatch):
    folder = tmp_path / "memory"
    writers = ThreadWriters(folder)
    writers.wait_until_all_write()
    monkeypatch.setattr(opened, "is_open", lambda _: False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        _reindex_when_free(folder, Slow(), monkeypatch)
        moment = time.monotonic()
        writers.wait_for(0, refused=3 * WRITERS)
        said = writers.stop()
    assert said.acknowledged_after(moment) == []
    with pytest.warns(RuntimeWarning, match="EncoderMismatch"):
        assert writers.memory.recall("q").cases == ()
    assert not writers.memory.health().ok
    assert "EncoderMismatch" in str(writers.memory.health().last_error)
    writers.close()
    assert not list((folder / "snapshots").glob("*")), "what was learned under the old embedder was left in the folder"


@pytest.mark.slow
def test_of_two_embedders_that_meet_in_an_empty_folder_one_wins(tmp_path: Path):
    for i in range(10):
        folder, said = tmp_path / f"memory{i}", []
        CascadeMemory(folder, embedder="hashing").close()
        ledgers = [SQLiteLedger(folder / "ledger.sqlite3") for _ in range(2)]
        embedders = [HashingEmbedder(384), Slow()]
        ready = threading.Barrier(2)

        def first_write(ledger: SQLiteLedger, embedder: HashingEmbedder, said=said, ready=ready) -> None:
            ledger.bind(named(embedder))
            number = ledger.namespace("default", create=True)
            assert number is not None
            vector = embed_with(embedder, ["q"])[0]
            case = new_case(f"q {embedder.identity}", vector, "s", solution_key="s", namespace=number, source="host")
            ready.wait(10)
            try:
                ledger.cases.add([case])
                said.append(embedder.identity)
            except EncoderMismatch:
                pass

        threads = [threading.Thread(target=first_write, args=both) for both in zip(ledgers, embedders, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for ledger in ledgers:
            ledger.close()
        assert len(said) == 1
        assert len(_vectors(folder)) == 1
        winner = HashingEmbedder(384) if said == ["hashing-1:384"] else Slow()
        with CascadeMemory(folder, embedder=winner) as memory:
            assert memory.stats().cases == 1


def test_two_processes_with_different_embedders_never_mix_their_vectors(tmp_path: Path):
    """The second one to write is refused for good, also when it opened the folder first."""
    folder = tmp_path / "memory"
    first = CascadeMemory(folder, embedder="hashing", learn="inline")
    ledger = SQLiteLedger(folder / "ledger.sqlite3")
    ledger.facts.set("embedder", '["another-1:384", 384]')
    ledger.close()
    said: list[str] = []
    assert not attempt(first, "first", 1, said.append)
    assert "EncoderMismatch" in said[0]
    with pytest.raises(StoreError, match="open it again with 'another-1:384'"):
        first.add("q", "s")
    first.close()


def test_the_doctor_finds_vectors_that_another_embedder_made(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        memory.add([(f"task {i}", f"s{i}") for i in range(40)])
        assert {check.name: check.ok for check in memory.data.examine()}["vectors"]
    ledger = SQLiteLedger(folder / "ledger.sqlite3")
    with ledger.connections.write(durable=True) as connection:
        other = embed_with(Slow(), ["anything"])[0].tobytes()
        connection.execute("UPDATE case_vector SET vector = ? WHERE key > 35", (other,))
    ledger.close()
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        (found,) = [check for check in memory.data.examine() if check.name == "vectors"]
        assert not found.ok
        assert "cascade-memory data reindex" in found.detail
    reindex(folder, "hashing", progress=False)
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        assert all(check.ok for check in memory.data.examine())


def test_the_doctor_finds_vectors_of_another_length(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        memory.recall("an episode that is open")
    ledger = SQLiteLedger(folder / "ledger.sqlite3")
    with ledger.connections.write(durable=True) as connection:
        connection.execute("UPDATE episode_vector SET vector = ?", (np.ones(16, np.float32).tobytes(),))
    ledger.close()
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        (found,) = [check for check in memory.data.examine() if check.name == "vectors"]
        assert not found.ok
        assert "their length differs" in found.detail


def test_expired_cases_get_their_new_vectors_too(tmp_path: Path):
    folder = tmp_path / "memory"
    with CascadeMemory(folder, embedder="hashing", learn="inline", retention=Retention(ttl=3600)) as memory:
        case = memory.add("task", "s")
        with engine_of(memory).parts.ledger.connections.write(durable=True) as connection:
            connection.execute("UPDATE cases SET verified_run = verified_run - 4000")
        state_of(memory).next_look = 0.0
        memory.recall("task")
        assert [one.id for one in memory.cases.expired()] == [case]
    reindex(folder, Slow(), progress=False)
    with CascadeMemory(folder, embedder=Slow(), learn="inline") as memory:
        assert memory.cases.bring_back() == [case]
        assert memory.cases.search("task").explain().candidates[0].similarity == pytest.approx(1.0)
