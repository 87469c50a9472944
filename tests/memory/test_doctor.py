"""Whatever state a folder was left in, opening repairs it or refuses with a sentence that says what to do."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.cli import main
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import StoreCorrupt, StoreError


@pytest.fixture
def folder(on_disk: Callable[..., CascadeMemory], tmp_path: Path) -> Path:
    """A folder with a little of everything, closed."""
    memory = on_disk()
    for i in range(30):
        recall = memory.recall(f"task {i} of kind {i % 7}")
        memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 7}")
    memory.recall("still open")
    memory.close()
    return tmp_path / "memory"


def _sql(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / "ledger.sqlite3", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def _wrong(memory: CascadeMemory) -> list[str]:
    return [check.name for check in memory.data.examine() if not check.ok]


def test_a_healthy_folder_has_nothing_to_mend(folder: Path, on_disk):
    memory = on_disk()
    assert _wrong(memory) == []
    assert all(check.ok and "mended" not in check.detail for check in memory.data.examine(fix=True))


def test_rows_that_belong_to_nothing_are_found_and_removed(folder: Path, on_disk):
    _sql(
        folder,
        "PRAGMA foreign_keys = OFF",
        "DELETE FROM case_vector WHERE key = (SELECT min(key) FROM cases)",
        "DELETE FROM episode WHERE key = (SELECT max(key) FROM episode WHERE status = 'settled')",
    )
    memory = on_disk()
    before = memory.stats().cases
    assert "rows that belong to nothing" in _wrong(memory)
    assert memory.recall("task 3 of kind 3").error is None
    assert any(check.detail.startswith("mended") for check in memory.data.examine(fix=True))
    assert _wrong(memory) == []
    assert memory.stats().cases == before - 1


def test_a_clock_that_was_set_back_is_noticed_and_put_right(folder: Path, on_disk):
    _sql(folder, f"UPDATE cases SET created_at = {time.time() + 9e6}, verified_at = {time.time() + 9e6}")
    memory = on_disk()
    assert _wrong(memory) == ["clock"]
    memory.data.examine(fix=True)
    assert _wrong(memory) == []
    assert memory.cases.search("task 3 of kind 3").cases[0].solution == "solution 3"


def test_a_chroma_with_other_cases_in_it_is_made_anew(folder: Path, on_disk):
    memory = on_disk()
    memory.sync()
    engine_of(memory).parts.mirror.delete("default", [memory.cases.search("task 3 of kind 3").cases[0].id])
    assert _wrong(memory) == ["chroma"]
    assert memory.data.examine(fix=True)
    assert _wrong(memory) == []


def test_snapshots_that_nobody_can_read_are_found_and_removed(folder: Path, on_disk):
    (folder / "snapshots" / "policy-1-0000000000000001.npz").write_bytes(b"PK garbage")
    unfinished = folder / "snapshots" / "policy-1-0000000000000002.77.part"
    unfinished.write_bytes(b"PK")
    os.utime(unfinished, (time.time() - 3600, time.time() - 3600))
    memory = on_disk()
    assert _wrong(memory) == ["what was learned"]
    memory.data.examine(fix=True)
    assert _wrong(memory) == []
    assert not unfinished.exists()


def test_the_command_line_mends_too(folder: Path, capsys):
    _sql(folder, f"UPDATE episode SET opened_at = {time.time() + 9e6}")
    assert main(["data", "doctor", str(folder), "--json"]) == 1
    assert main(["data", "doctor", str(folder), "--fix"]) == 0
    capsys.readouterr()
    assert main(["data", "doctor", str(folder), "--json"]) == 0
    found = {check["name"]: check for check in json.loads(capsys.readouterr().out)}
    assert found["pending episodes"]["detail"].startswith("1 open, 0 of them")
    assert found["clock"]["ok"]


TORN: dict[str, Callable[[Path], object]] = {
    "ledger cut in the middle": lambda folder: os.truncate(folder / "ledger.sqlite3", 40_000),
    "ledger cut in its header": lambda folder: os.truncate(folder / "ledger.sqlite3", 50),
    "ledger gone": lambda folder: (folder / "ledger.sqlite3").unlink(),
    "ledger empty": lambda folder: os.truncate(folder / "ledger.sqlite3", 0),
    "ledger is a folder": lambda folder: ((folder / "ledger.sqlite3").unlink(), (folder / "ledger.sqlite3").mkdir()),
    "ledger is something else": lambda folder: (folder / "ledger.sqlite3").write_bytes(b"\x00\xff" * 9_000),
    "log of garbage": lambda folder: (folder / "ledger.sqlite3-wal").write_bytes(os.urandom(9_000)),
    "shared memory of garbage": lambda folder: (folder / "ledger.sqlite3-shm").write_bytes(os.urandom(32_768)),
    "chroma cut": lambda folder: os.truncate(folder / "chroma" / "chroma.sqlite3", 100),
    "chroma gone": lambda folder: shutil.rmtree(folder / "chroma"),
    "chroma is a file": lambda folder: (shutil.rmtree(folder / "chroma"), (folder / "chroma").write_text("?")),
    "chroma half built": lambda folder: (folder / "chroma").rename(folder / "chroma.building"),
    "snapshots cut": lambda folder: [os.truncate(file, 60) for file in (folder / "snapshots").iterdir()],
    "snapshots gone": lambda folder: shutil.rmtree(folder / "snapshots"),
    "snapshots is a file": lambda folder: (shutil.rmtree(folder / "snapshots"), (folder / "snapshots").write_text("?")),
    "lock is a folder": lambda folder: ((folder / "owner.lock").unlink(missing_ok=True), (folder / "owner.lock").mkdir()),
    "lock of an earlier process": lambda folder: (folder / "owner.lock").write_text("4711"),
}


@pytest.mark.parametrize("state", TORN)
def test_every_torn_state_is_repaired_or_refused_in_words(folder: Path, on_disk, state: str):
    TORN[state](folder)
    try:
        memory = on_disk()
    except StoreError as error:
        said = str(error)
        assert state.startswith(("ledger", "lock", "log"))
        assert any(hint in said for hint in ("restore", "another folder", "remove it", "move")), said
        return
    assert memory.stats().rewards == 30 or state == "ledger cut in the middle"
    assert memory.recall("task 3 of kind 3").cases or state == "ledger cut in the middle"
    if engine_of(memory).parts.ledger.maintenance.integrity() != "ok":
        assert "ledger" in _wrong(memory)  # and says what to do
        return
    memory.sync()
    assert [check.name for check in memory.data.examine(fix=True) if not check.ok] == []
    assert not list(folder.glob("*.building"))


def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)  # as on a share that grants everything
    with pytest.raises(StoreError, match="local disk"):
        CascadeMemory(tmp_path / "memory", embedder="hashing")

    def unsupported(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.raises(StoreError, match="local disk"):
        CascadeMemory(tmp_path / "memory", embedder="hashing")
    monkeypatch.undo()
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.add("q", "s")


def test_a_ledger_of_another_program_is_left_alone(tmp_path: Path):
    folder = tmp_path / "memory"
    folder.mkdir()
    _sql(folder, "CREATE TABLE mine (x)")
    before = (folder / "ledger.sqlite3").read_bytes()
    with pytest.raises(StoreCorrupt, match="another folder"):
        CascadeMemory(folder, embedder="hashing")
    assert (folder / "ledger.sqlite3").read_bytes() == before


def test_vectors_are_ok_or_the_embedder_fails_but_not_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.add("cool some mug", "fridge")
        memory.sync()

        def fail(*_: object) -> object:
            raise OSError("the model is gone")

        monkeypatch.setattr(HashingEmbedder, "embed", fail)
        (failed,) = [one for one in memory.data.examine() if one.name == "vectors"]
        assert (failed.ok, "the embedder fails" in failed.detail, "the model is gone" in failed.detail) == (False, True, True)
    with CascadeMemory(tmp_path / "memory", embedder="stored") as looking:
        (seen,) = [one for one in looking.data.examine() if one.name == "vectors"]
    assert seen.ok
    assert "fail" not in seen.detail
