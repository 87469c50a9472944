"""An index whose vectors stand in a temporary file answers as one that holds them in memory."""

from __future__ import annotations

import errno
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from cascade_memory import CascadeMemory
from cascade_memory.stores import vector_rows
from cascade_memory.stores.index import ExactIndex
from cascade_memory.stores.vector_rows import VectorFile, VectorRows
from cascade_memory.testing import CaseIndexContract

_D = 16


def _unit(n: int, seed: int) -> NDArray[np.float32]:
    raw = np.random.default_rng(seed).normal(size=(n, _D)).astype(np.float32)
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


class TestIndexWithItsVectorsInAFile(CaseIndexContract):
    """The contract of every index."""

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(vector_rows, "IN_MEMORY", 0)

    def make(self, dimension):
        return ExactIndex(dimension)


def test_what_was_removed_in_memory_is_not_moved_to_the_file(monkeypatch: pytest.MonkeyPatch):
    written: list[NDArray[np.float32]] = []
    write = VectorFile.write

    def recorded(self: VectorFile, start: int, vectors: NDArray[np.float32]) -> None:
        written.append(vectors.copy())
        write(self, start, vectors)

    monkeypatch.setattr(VectorFile, "write", recorded)
    monkeypatch.setattr(vector_rows, "IN_MEMORY", 4 * _D * 10)
    index, vectors = ExactIndex(_D), _unit(14, 1)
    index.upsert(np.arange(1, 9), vectors[:8])
    index.remove([3])
    index.upsert(np.arange(9, 15), vectors[8:])
    assert written
    assert not any((part == vectors[2]).all(1).any() for part in written)
    assert index.nearest(vectors[3], 1)[0].tolist() == [4]


@pytest.mark.parametrize("limit", [0, 4 * _D * 100, 4 * _D * 1000])
def test_both_answer_alike_after_any_changes(limit: int, monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(limit)
    one, two = ExactIndex(_D), ExactIndex(_D)
    live: set[int] = set()
    last = 0
    for step in range(120):
        changes = rng.random()
        if changes < 0.6 or not last:
            n = int(rng.integers(1, 30))
            keys = np.arange(last + 1, last + 1 + n)
            last += n
        elif changes < 0.7:
            keys = rng.choice(last, size=min(last, 5), replace=False) + 1  # known ones, and ones that were removed
        else:
            keys = np.zeros(0, np.int64)
        gone = rng.choice(sorted(live), size=min(len(live), 12), replace=False) if changes > 0.8 and live else ()
        for index in (one, two):
            monkeypatch.setattr(vector_rows, "IN_MEMORY", limit if index is two else 2**40)
            index.upsert(keys, _unit(len(keys), step))
            index.remove([int(key) for key in gone])
        live = (live | {int(key) for key in keys}) - {int(key) for key in gone}
        query = _unit(1, 10_000 + step)[0]
        among = np.sort(rng.choice(last, size=int(rng.integers(1, last + 1)), replace=False)) + 1
        for arguments in ({}, {"among": among}, {"after": last // 2}):
            expected, found = one.nearest(query, 12, **arguments), two.nearest(query, 12, **arguments)
            np.testing.assert_array_equal(expected[0], found[0])
            np.testing.assert_allclose(expected[1], found[1], atol=1e-6)
            np.testing.assert_array_equal(one.vectors(found[0]), two.vectors(found[0]))
        assert one.count == two.count == len(live)


@pytest.mark.parametrize("limit", [0, 2**30])
def test_a_reader_is_not_disturbed_by_what_is_added(limit: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vector_rows, "IN_MEMORY", limit)
    seen = VectorRows(_D).with_rows(0, _unit(100, 1))
    more = seen.with_rows(100, _unit(100, 2))
    np.testing.assert_array_equal(seen.at(np.arange(100)), _unit(100, 1))
    np.testing.assert_array_equal(more.at(np.arange(99, 101)), [_unit(100, 1)[99], _unit(100, 2)[0]])


def test_a_removed_vector_does_not_stay_on_the_disk(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vector_rows, "IN_MEMORY", 0)
    rows = VectorRows(_D).with_rows(0, _unit(100, 1))
    rows.wipe(np.array([6]))
    assert not rows.at(np.array([6])).any()
    assert rows.at(np.array([5])).any()


@pytest.mark.parametrize("after", [0, 3])
def test_a_full_disk_leaves_the_vectors_in_memory(after: int, monkeypatch: pytest.MonkeyPatch, caplog):
    monkeypatch.setattr(vector_rows, "IN_MEMORY", 4 * _D * 50)
    write, written = VectorFile.write, []

    def refuses(self: VectorFile, start: int, vectors: NDArray[np.float32]) -> None:
        if len(written) >= after:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(start)
        write(self, start, vectors)

    monkeypatch.setattr(VectorFile, "write", refuses)
    index = ExactIndex(_D)
    vectors = _unit(400, 5)
    for start in range(0, 400, 20):
        index.upsert(np.arange(start, start + 20) + 1, vectors[start : start + 20])
    keys, _ = index.nearest(vectors[333], 1)
    assert keys.tolist() == [334]
    assert index.bytes >= 400 * 4 * _D
    assert caplog.text.count("kept in memory") == 1  # it does not try again at each change


def test_vectors_beyond_the_limit_take_no_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vector_rows, "IN_MEMORY", 2**20)
    index = ExactIndex(256)
    tracemalloc.start()
    try:
        rng = np.random.default_rng(0)
        for start in range(0, 100_000, 2_000):
            index.upsert(np.arange(start, start + 2_000) + 1, rng.random((2_000, 256), np.float32))
        index.nearest(rng.random(256, np.float32), 32)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20  # of 98 MiB
    finally:
        tracemalloc.stop()


def test_a_memory_works_with_its_vectors_in_a_file(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vector_rows, "IN_MEMORY", 0)
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        memory.add([(f"task {i} of kind {i % 9}", f"solution {i % 9}") for i in range(300)])
        for i in range(20):
            with memory.episode(f"task {i} of kind {i % 9} again") as episode:
                assert episode.cases
                episode.reward(1.0)
        memory.forget(memory.cases.search("task 7 of kind 7").cases[0].id)
        assert all(check.ok for check in memory.data.examine())
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        assert memory.cases.search("task 8 of kind 8").cases[0].solution == "solution 8"
