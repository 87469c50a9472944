"""Hundreds of damaged and forged files (thousands in .ci/matrix): refused with a sentence, or healed from the ledger."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hostile_files import Canary, case_ids, check_serves, copied, each, filled, opened
from inside import engine_of
from spoiled_files import damaged, edited, spoiled_lines, spoiled_snapshot, with_schema

from cascade_memory import restore

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(7_200)]


def _served(folder: Path | None, kept: set[str], ranker: str = "light") -> None:
    memory = opened(folder, ranker)
    try:
        check_serves(memory, kept)
    finally:
        memory.close()


@pytest.mark.parametrize(("ranker", "share"), [("light", 1), ("neural-linlogucb", 4), ("neural-logucb", 4)])
def test_no_snapshot_makes_a_recall_fail(place: Path, ranker: str, share: int):
    filled(place / "base", ranker)
    ids, canary = case_ids(place / "base"), Canary(place)

    def trial(number: int, rng: Random) -> Callable[[], None]:
        canary.check()
        folder = copied(place / "base", place / "memory")
        (file,) = (folder / "snapshots").glob("policy-*.npz")
        content = file.read_bytes()
        file.write_bytes(damaged(content, rng) if rng.random() < 0.5 else spoiled_snapshot(content, rng, canary.file))
        return lambda: _served(folder, ids, ranker)

    assert set(each(f"snapshot {ranker}", trial, share)) == {"served"}  # there is always the ledger to learn from
    canary.check()


def _spoil(backup: Path, rng: Random, canary: Canary) -> set[str]:
    """Damage a backup in one way; return the cases that it may cost."""
    how = rng.choice(["bytes", "bytes", "row", "row", "row", "schema", "snapshot", "link"])
    ledger = backup / "ledger.sqlite3"
    if how == "bytes":
        ledger.write_bytes(damaged(ledger.read_bytes(), rng))
        return case_ids(backup.parent / "base")
    if how == "row":
        return edited(ledger, rng)
    if how == "schema":
        with_schema(ledger, rng)
    elif how == "snapshot":
        for file in (backup / "snapshots").iterdir():
            file.write_bytes(spoiled_snapshot(file.read_bytes(), rng, canary.file))
    else:
        _link(backup, rng, canary)
    return set()


def _link(backup: Path, rng: Random, canary: Canary) -> None:
    where = rng.choice(["snapshot", "snapshots", "ledger", "ledger.sqlite3-wal", "ledger.sqlite3-journal", "pipe"])
    if where == "snapshot":
        (backup / "snapshots" / "policy-1-0000000000000099.npz").symlink_to(canary.file)
    elif where == "snapshots":
        copied(backup / "snapshots", backup / "moved")
        for file in (backup / "snapshots").iterdir():
            file.unlink()
        (backup / "snapshots").rmdir()
        (backup / "snapshots").symlink_to(canary.folder)
    elif where == "ledger":
        (backup / "ledger.sqlite3").rename(backup / "elsewhere")
        (backup / "ledger.sqlite3").symlink_to(backup / "elsewhere")
    elif where == "pipe":
        os.mkfifo(backup / "snapshots" / "policy-1-0000000000000098.npz")
    else:
        (backup / where).symlink_to(canary.file)


def test_no_backup_brings_in_what_cannot_be_used(place: Path):
    filled(place / "base")
    ids, canary = case_ids(place / "base"), Canary(place)

    def trial(number: int, rng: Random) -> Callable[[], None]:
        canary.check()
        backup = copied(place / "base", place / "backup")
        may_go = _spoil(backup, rng, canary)

        def put_back() -> None:
            copied(place / "others", place / "memory")  # a folder with files of somebody else in it
            (place / "memory" / "policy-1-0000000000000001.npz").unlink()
            restore(backup, place / "memory")
            _served(place / "memory", ids - may_go)

        return put_back

    seen = each("backup", trial)
    canary.check()
    assert seen["refused"]
    assert seen["served"]


@pytest.mark.long
def test_no_edited_row_makes_a_recall_fail(place: Path):
    """Edited where it stands, and opened without a restore that would have looked."""
    filled(place / "base")
    ids, canary = case_ids(place / "base"), Canary(place)

    def trial(number: int, rng: Random) -> Callable[[], None]:
        canary.check()
        folder = copied(place / "base", place / "memory")
        may_go = edited(folder / "ledger.sqlite3", rng)

        def serve() -> None:
            memory = opened(folder)
            try:
                recall = memory.recall("task 3 of kind 3")
                assert recall.error is None, recall.error
                memory.data.examine(fix=True)
                engine_of(memory).failures.clear()  # what could not be learned until it was mended
                check_serves(memory, ids - may_go)
            finally:
                memory.close()
            _served(folder, ids - may_go)  # what the doctor has mended can be opened again

        return serve

    seen = each("rows", trial)
    canary.check()
    assert seen["served"] > seen["refused"]


def test_no_export_brings_in_what_cannot_be_used(place: Path):
    filled(place / "base")
    source, text = opened(place / "base"), io.StringIO()
    source.data.export(text)
    source.close()
    lines, canary = text.getvalue().splitlines(), Canary(place)

    def trial(number: int, rng: Random) -> Callable[[], None]:
        canary.check()
        spoiled = spoiled_lines(lines, rng)

        def take_in() -> None:
            memory = opened(None)
            mine, before = memory.add("my own task", "my own solution"), memory.stats()
            try:
                memory.data.import_(spoiled, progress=False)
            except Exception:
                assert memory.stats() == before
                raise
            finally:
                check_serves(memory, {mine})
                memory.close()

        return take_in

    seen = each("export", trial)
    canary.check()
    assert seen["refused"]
    assert seen["served"]
