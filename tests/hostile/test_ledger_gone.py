"""A ledger that is taken away from under its writers: from then on every write is an error, never an acknowledgement."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ack_writers import WRITERS, ProcessWriters, ThreadWriters

from cascade_memory import CascadeMemory
from cascade_memory.assembly.restore import restore
from cascade_memory.errors import StoreError, StoreReplaced

Writers = Callable[[Path], "ThreadWriters | ProcessWriters"]


@pytest.fixture(params=[ThreadWriters, ProcessWriters], ids=["threads", "processes"])
def writers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ThreadWriters | ProcessWriters]:
    found = request.param(tmp_path / "memory")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a recall goes on without cases; that is not what is asked here
            found.wait_until_all_write()
            yield found
            found.stop()
    finally:
        found.close()


def _delete_the_ledger(folder: Path) -> None:
    (folder / "ledger.sqlite3").unlink()


def _delete_the_folder(folder: Path) -> None:
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def _move_the_folder_away(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def _delete_the_log(folder: Path) -> None:
    (folder / "ledger.sqlite3-wal").unlink()


def _put_another_in_its_place(folder: Path) -> None:
    other = folder.with_name("other")
    with CascadeMemory(other, embedder="hashing") as memory:
        memory.add("somebody else's task", "somebody else's solution")
    os.replace(other / "ledger.sqlite3", folder / "ledger.sqlite3")


def _put_another_folder_in_its_place(folder: Path) -> None:
    other = folder.with_name("other")
    CascadeMemory(other, embedder="hashing").close()
    folder.rename(folder.with_name("elsewhere"))
    other.rename(folder)


_ATTACKS = [
    _delete_the_ledger,
    _delete_the_folder,
    _move_the_folder_away,
    _delete_the_log,
    _put_another_in_its_place,
    _put_another_folder_in_its_place,
]


@pytest.mark.long
@pytest.mark.parametrize("attack", _ATTACKS, ids=lambda attack: attack.__name__.strip("_"))
def test_nothing_is_acknowledged_that_was_begun_afterwards(writers, attack, tmp_path: Path):
    attack(tmp_path / "memory")
    moment = time.monotonic()
    writers.wait_for(0, refused=3 * WRITERS)
    said = writers.stop()
    assert said.acknowledged_after(moment) == []
    later = [sentence for began, sentence in said.refused if began > moment]
    assert any("StoreReplaced" in one and "close the memory, and open it again" in one.lower() for one in later)


@pytest.mark.parametrize("attack", _ATTACKS, ids=lambda attack: attack.__name__.strip("_"))
def test_the_memory_says_so_and_a_new_one_is_the_folders(attack, tmp_path: Path):
    folder = tmp_path / "memory"
    memory = CascadeMemory(folder, embedder="hashing", learn="inline")
    memory.add("task", "solution")
    attack(folder)
    assert not memory.health().ok
    assert "StoreReplaced" in str(memory.health().last_error)
    for write in (
        lambda: memory.add("q", "s"),
        lambda: memory.review.propose("q", "s"),
        lambda: memory.forget(everything=True),
        lambda: memory.forget(everything=True, purge=True),
    ):
        with pytest.raises(StoreReplaced, match="open it again"):
            write()
    with pytest.warns(RuntimeWarning, match="StoreReplaced"):
        assert "StoreReplaced" in str(memory.recall("task").error)
    if not folder.exists():
        memory.close()
        assert not folder.exists()  # closing leaves nothing where there is nothing any more
        return
    if attack is _delete_the_ledger:
        memory.close()
        (folder / "ledger.sqlite3").unlink(missing_ok=True)
        shutil.rmtree(folder)
    with CascadeMemory(folder, embedder="hashing", learn="inline") as new:
        case = new.add("new task", "new solution")
        assert new.health().ok
    memory.close()
    with CascadeMemory(folder, embedder="hashing", learn="inline") as again:
        assert again.cases.get(case).solution == "new solution"
        assert all(check.ok for check in again.data.examine())


def test_what_was_acknowledged_before_its_log_was_deleted_is_there_after_closing(tmp_path: Path):
    memory = CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline")
    cases = memory.add([(f"task {i}", f"solution {i}") for i in range(40)])
    _delete_the_log(tmp_path / "memory")
    with pytest.raises(StoreReplaced):
        memory.add("q", "s")
    memory.close()
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as again:
        assert {again.cases.get(case).id for case in cases} == set(cases)


@pytest.mark.long
def test_a_restore_is_refused_under_writers_and_loses_nothing(writers, tmp_path: Path):
    folder, backup = tmp_path / "memory", tmp_path / "backup"
    with CascadeMemory(tmp_path / "other", embedder="hashing") as other:
        other.add("another task", "another solution")
        other.data.backup(backup)
    for _ in range(3):
        with pytest.raises(StoreError, match="close it everywhere"):
            restore(backup, folder, replace=True)
    said = writers.stop()
    assert said.refused == []
    writers.close()
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert {memory.cases.get(case).id for case in said.ids()} == said.ids()
    restore(backup, folder, replace=True)
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert memory.stats().cases == 1


def test_whoever_has_a_ledger_open_that_is_restored_all_the_same_is_refused(tmp_path: Path):
    """By hand, say, or by a restore of an older version: within the same file, so that its number tells nothing."""
    import sqlite3
    from contextlib import closing

    from cascade_memory.ledger.belonging import begin_generation

    memory = CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline")
    memory.add("task", "solution")
    with closing(sqlite3.connect(tmp_path / "memory" / "ledger.sqlite3")) as connection:
        begin_generation(connection)
        connection.commit()
    with pytest.raises(StoreReplaced, match="restored, reindexed"):
        memory.add("q", "s")
    assert not memory.health().ok
    memory.close()
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as again:
        assert again.stats().cases == 1
        assert again.add("q", "s")


def test_a_working_directory_that_changes_is_no_replacement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    memory = CascadeMemory("memory", embedder="hashing", learn="inline")
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    case = memory.add("task", "solution")
    assert memory.recall("task").error is None
    memory.close()
    assert not list((tmp_path / "deeper").iterdir())
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as again:
        assert again.cases.get(case).solution == "solution"


@pytest.mark.parametrize("written", [False, True], ids=["while it can only be read", "when it can be written again"])
def test_a_ledger_that_is_replaced_while_it_can_only_be_read_is_not_taken_for_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool
):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.add([(f"task {i}", f"solution {i}") for i in range(5)], progress=False)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert memory.recall("task 3").cases
        assert memory.health().read_only
        for name in ("ledger.sqlite3-wal", "ledger.sqlite3-shm"):
            (tmp_path / "memory" / name).unlink(missing_ok=True)
        _put_another_in_its_place(tmp_path / "memory")
        if written:
            monkeypatch.undo()
            time.sleep(0.7)
            with pytest.raises(StoreReplaced):
                memory.add("task", "solution")
        recall = memory.recall("task 3")
        assert str(recall.error).startswith("StoreReplaced")
        assert not recall.cases
        with contextlib.suppress(StoreError):
            assert memory.reward(recall.episode_id, 1.0, solution="solution 3") is None
    monkeypatch.undo()
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        assert memory.stats().recalls == 0
        assert [case.solution for case in memory.cases.search("task").cases] == ["somebody else's solution"]
