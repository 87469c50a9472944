"""Backups are taken at work, checked before they count, and put back without losing what is there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, restore
from cascade_memory.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ledger.archive import put_copy


def _teach(memory: CascadeMemory, n: int, start: int = 0) -> None:
    for i in range(start, start + n):
        recall = memory.recall(f"task {i} of kind {i % 7}")
        memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 7}")


@pytest.mark.slow
def test_a_backup_taken_under_load_restores_to_a_consistent_memory(on_disk, tmp_path: Path):
    memory = on_disk(learn="background")
    _teach(memory, 30)
    before = memory.stats()
    stop, written = threading.Event(), []

    def work(name: int) -> None:
        for i in range(10_000):
            if stop.is_set():
                return
            recall = memory.recall(f"load {name} {i}")
            written.append(memory.reward(recall.episode_id, 1.0, solution=f"answer {name} {i}"))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    acknowledged = list(written)
    held = memory.data.backup(tmp_path / "backup")
    stop.set()
    for thread in threads:
        thread.join()
    assert held["cases"] >= before.cases + len(acknowledged)
    assert restore(tmp_path / "backup", tmp_path / "restored") == held
    with CascadeMemory(tmp_path / "restored", embedder="hashing", learn="inline") as restored:
        assert restored.stats().cases == held["cases"]
        assert restored.stats().rewards == held["outcomes"]
        for case_id in acknowledged:
            assert restored.cases.get(case_id)
        restored.sync()
        assert all(check.ok for check in restored.data.examine())
        assert state_of(restored).policy.rewards == restored.stats().rewards
    assert memory.stats().cases == before.cases + len(written)  # the original went on


def test_a_backup_is_a_memory_that_can_be_opened(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 30)
    memory.data.backup(tmp_path / "backup")
    with CascadeMemory(tmp_path / "backup", embedder="hashing") as copy:
        assert copy.cases.search("task 3 of kind 3").cases[0].solution == "solution 3"
        assert copy.stats().rewards == 30


def test_a_memory_in_ram_can_be_kept_by_backing_it_up(ram: CascadeMemory, tmp_path: Path):
    _teach(ram, 12)
    ram.data.backup(tmp_path / "kept")
    with CascadeMemory(tmp_path / "kept", embedder="hashing", learn="inline") as kept:
        assert kept.stats().cases == ram.stats().cases
        assert state_of(kept).policy.rewards == 12


def test_an_earlier_backup_is_not_overwritten(on_disk, tmp_path: Path):
    memory = on_disk()
    memory.add("q", "s")
    memory.data.backup(tmp_path / "backup")
    with pytest.raises(InvalidInput, match="exists already"):
        memory.data.backup(tmp_path / "backup")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreUnwritable, match="the memory itself is untouched"):
        memory.data.backup(tmp_path / "file" / "backup")
    assert not list(tmp_path.glob("*.unfinished"))


def test_restoring_over_a_memory_needs_to_be_asked_for(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 10)
    memory.data.backup(tmp_path / "backup")
    _teach(memory, 10, start=10)
    with pytest.raises(InvalidInput, match="replace=True"):
        restore(tmp_path / "backup", tmp_path / "memory")
    with pytest.raises(StoreError, match="close it everywhere"):
        restore(tmp_path / "backup", tmp_path / "memory", replace=True)
    assert memory.stats().rewards == 20
    memory.close()
    restore(tmp_path / "backup", tmp_path / "memory", replace=True)
    memory = on_disk()
    assert memory.stats().rewards == 10
    assert state_of(memory).policy.rewards == 10
    memory.sync()
    assert all(check.ok for check in memory.data.examine())


def test_what_belongs_to_the_original_is_in_no_byte_of_a_copy(on_disk, tmp_path: Path):
    memory = on_disk()
    name = b"of the original".hex()
    engine_of(memory).parts.ledger.facts.set("mirror_of", name)
    memory.close()
    put_copy(tmp_path / "memory" / "ledger.sqlite3", tmp_path / "copy.sqlite3")
    assert name.encode() in (tmp_path / "memory" / "ledger.sqlite3").read_bytes()
    assert name.encode() not in (tmp_path / "copy.sqlite3").read_bytes()


def test_a_process_that_only_follows_is_noticed_before_anything_is_replaced(on_disk, tmp_path: Path):
    memory = on_disk()
    memory.add("q", "s")
    memory.data.backup(tmp_path / "backup")
    memory.close()
    script = textwrap.dedent(
        """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1])
        connection.execute("SELECT count(*) FROM cases").fetchone()
        print("open", flush=True)
        sys.stdin.read()
        """
    )
    arguments = [sys.executable, "-c", script, str(tmp_path / "memory" / "ledger.sqlite3")]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match="in use"):
            restore(tmp_path / "backup", tmp_path / "memory", replace=True)
        other.communicate("")
    assert on_disk().stats().cases == 1


def test_a_damaged_backup_replaces_nothing(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 40)
    memory.data.backup(tmp_path / "backup")
    memory.close()
    file = tmp_path / "backup" / "ledger.sqlite3"
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8192] = b"\xff" * 8192
    file.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="nothing was changed"):
        restore(tmp_path / "backup", tmp_path / "memory", replace=True)
    with pytest.raises(InvalidInput, match="no backup"):
        restore(tmp_path / "nowhere", tmp_path / "memory", replace=True)
    assert on_disk().stats().rewards == 40


def test_a_damaged_ledger_is_kept_beside_the_one_that_was_restored(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 20)
    memory.data.backup(tmp_path / "backup")
    memory.close()
    ledger = tmp_path / "memory" / "ledger.sqlite3"
    ledger.write_bytes(b"not a database at all" * 500)
    with pytest.raises(StoreCorrupt, match="restore it from a backup"):
        on_disk()
    restore(tmp_path / "backup", tmp_path / "memory", replace=True)
    assert on_disk().stats().rewards == 20
    (damaged,) = (tmp_path / "memory").glob("ledger.sqlite3.damaged-*")
    assert damaged.read_bytes().startswith(b"not a database")


def test_an_interrupted_restore_says_how_to_go_on(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 10)
    memory.data.backup(tmp_path / "backup")
    memory.close()
    folder = tmp_path / "memory"
    shutil.copyfile(tmp_path / "backup" / "ledger.sqlite3", folder / "ledger.sqlite3.restoring")
    (folder / "ledger.sqlite3").rename(folder / "ledger.sqlite3.damaged-1")  # where a kill may leave it
    shutil.rmtree(folder / "snapshots")
    with pytest.raises(StoreCorrupt, match="restore BACKUP"):
        on_disk()
    restore(tmp_path / "backup", folder, replace=True)
    assert on_disk().stats().rewards == 10
    assert not (folder / "ledger.sqlite3.restoring").exists()


def test_an_old_ledger_put_back_by_hand_does_not_take_what_was_learned_later(on_disk, tmp_path: Path):
    memory = on_disk()
    _teach(memory, 10)
    memory.close()
    old = (tmp_path / "memory" / "ledger.sqlite3").read_bytes()
    memory = on_disk()
    _teach(memory, 30, start=10)
    memory.close()
    (tmp_path / "memory" / "ledger.sqlite3").write_bytes(old)
    memory = on_disk()
    assert state_of(memory).policy.rewards == 10
    _teach(memory, 5, start=50)
    memory.sync()
    memory.data.rebuild()
    assert all(check.ok for check in memory.data.examine())


_KILLED = textwrap.dedent(
    """
    import sys
    from cascade_memory import CascadeMemory, restore
    verb, source, target = sys.argv[1:]
    print("ready", flush=True)
    if verb == "backup":
        with CascadeMemory(source, embedder="hashing") as memory:
            memory.data.backup(target)
    else:
        restore(source, target, replace=True)
    """
)


@pytest.mark.long
@pytest.mark.parametrize("verb", ["backup", "restore"])
def test_killed_in_the_middle_the_original_is_there(on_disk, tmp_path: Path, verb: str):
    rounds = 14
    memory = on_disk()
    memory.add([(f"task {i} of kind {i % 9}", "s" * 2000) for i in range(3000)], progress=False)
    _teach(memory, 10)
    memory.data.backup(tmp_path / "good")
    stats = memory.stats()
    memory.close()
    source, target = ("memory", "backup") if verb == "backup" else ("good", "memory")
    kills = finished = 0
    for i in range(rounds):
        arguments = [sys.executable, "-c", _KILLED, verb, str(tmp_path / source), str(tmp_path / target)]
        child = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep((0.28 if verb == "backup" else 0.14) * i / rounds)
        child.send_signal(signal.SIGKILL)
        child.stdout.close()
        kills += child.wait() == -signal.SIGKILL
        finished += child.returncode == 0
        if verb == "backup" and (tmp_path / "backup").exists():  # under its name only when it is whole
            assert restore(tmp_path / "backup", tmp_path / f"r{i}")["cases"] == stats.cases
            shutil.rmtree(tmp_path / "backup")
        if verb == "restore":  # an interrupted one may have to be repeated, and says so
            try:
                on_disk().close()
            except StoreCorrupt:
                restore(tmp_path / "good", tmp_path / "memory", replace=True)
        with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as again:
            assert again.stats() == stats
            assert engine_of(again).parts.ledger.maintenance.integrity() == "ok"
    assert kills >= rounds // 4
    assert os.path.exists(tmp_path / "good")


@pytest.mark.parametrize("url", ["postgresql://me:secret-word@db.example/agents", "http://127.0.0.1/copy", " S3://bucket/copy"])
def test_a_url_is_no_folder_to_copy_into(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder of that name would be made otherwise, and would show the password."""
    monkeypatch.chdir(tmp_path)
    with CascadeMemory(embedder="hashing") as memory:
        for copies in (memory.data.backup, memory.data.export):
            with pytest.raises(InvalidInput, match="target must be a path on this machine, not a URL") as refused:
                copies(url)
            assert "secret-word" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["ledger.sqlite3", "ledger.sqlite3-wal", "ledger.sqlite3-shm"])
def test_an_export_never_replaces_a_database(name: str, tmp_path: Path):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.add("cool some mug", "fridge")
        with pytest.raises(InvalidInput, match="is a file of a database, which an export would replace"):
            memory.data.export(tmp_path / "memory" / name)
        memory.add("heat some mug", "oven")
        assert memory.data.export(tmp_path / "memory" / "export.jsonl") == memory.data.export(
            tmp_path / "memory" / "export.jsonl"
        )
    with CascadeMemory(tmp_path / "memory") as again:
        assert len(again) == 2
