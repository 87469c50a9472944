"""What lies beside a ledger that is restored, or beside the files of a benchmark, is neither used nor written through."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from learned_folder import OnDisk, sql

from cascade_memory import CascadeMemory, restore
from cascade_memory.domain.private_files import open_own
from cascade_memory.errors import StoreUnwritable
from cascade_memory.evaluation.environments.kept_lines import add_line, whole_lines
from cascade_memory.evaluation.model.request_log import RequestLog

LEDGER = "ledger.sqlite3"


def test_a_log_that_a_deleted_ledger_left_is_not_applied_to_the_restored_one(folder: Path, backup: Path, tmp_path: Path):
    writer = sqlite3.connect(folder / LEDGER, isolation_level=None)
    writer.execute("DELETE FROM outcome")
    log = (folder / f"{LEDGER}-wal").read_bytes()
    writer.close()
    assert log
    for file in folder.glob(f"{LEDGER}*"):
        file.unlink()
    (folder / f"{LEDGER}-wal").write_bytes(log)
    assert restore(backup, folder)["outcomes"] == 12
    assert not (folder / f"{LEDGER}-wal").exists()
    assert len(list(folder.glob(f"{LEDGER}-wal.damaged-*"))) == 1
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert memory.stats().rewards == 12


def test_what_would_run_while_the_old_ledger_is_checked_does_not_run(folder: Path, backup: Path):
    endless = "hex(zeroblob(5000)) LIKE '" + "%0" * 12 + "%1'"  # quick_check would try it for years
    sql(
        folder,
        "PRAGMA ignore_check_constraints = ON",
        f"CREATE TABLE evil (x, CHECK ({endless}))",
        "INSERT INTO evil VALUES (1)",
    )
    assert restore(backup, folder, replace=True)["outcomes"] == 12
    assert len(list(folder.glob(f"{LEDGER}.damaged-*"))) == 1


def test_two_damaged_ledgers_of_one_second_are_both_kept(folder: Path, backup: Path):
    for content in (b"one" * 500, b"two" * 500):
        (folder / LEDGER).write_bytes(content)
        restore(backup, folder, replace=True)
    kept = {file.read_bytes()[:3] for file in folder.glob(f"{LEDGER}.damaged-*")}
    assert kept == {b"one", b"two"}


def test_a_purge_leaves_nothing_of_an_interrupted_restore(on_disk: OnDisk, folder: Path):
    for end in ("", "-wal", "-journal"):
        (folder / f"{LEDGER}.restoring{end}").write_bytes(b"somebody's text")
    memory = on_disk()
    memory.forget(memory.add("q", "s"), purge=True)
    assert not list(folder.glob(f"{LEDGER}.restoring*"))


@pytest.mark.parametrize("how", [os.symlink, os.link], ids=["link", "second name"])
def test_the_owner_s_lock_is_not_taken_on_somebody_s_file(on_disk: OnDisk, folder: Path, tmp_path: Path, how):
    (mine := tmp_path / "mine").write_text("mine")
    mine.chmod(0o644)
    (folder / "owner.lock").unlink()
    how(mine, folder / "owner.lock")
    with pytest.raises(StoreUnwritable, match=r"second name|remove it"):
        on_disk()
    assert mine.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("how", [os.symlink, os.link], ids=["link", "second name"])
def test_a_benchmark_adds_to_no_file_elsewhere(tmp_path: Path, how):
    (mine := tmp_path / "mine").write_text('{"a": 1}\n{"cut')
    before = mine.read_bytes()
    how(mine, tmp_path / "rows.jsonl")
    for write in (
        lambda: add_line(tmp_path / "rows.jsonl", {"b": 2}),
        lambda: whole_lines(tmp_path / "rows.jsonl"),
        lambda: RequestLog(tmp_path / "rows.jsonl"),
        lambda: open_own(tmp_path / "rows.jsonl", "w"),
    ):
        with pytest.raises((OSError, ValueError, LookupError)):
            write()
    assert mine.read_bytes() == before
