"""A folder that cannot be used, or is not ours: a clear error, and nothing in it is touched."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.errors import (
    InvalidInput,
    SchemaTooNew,
    StoreCorrupt,
    StoreUnwritable,
)
from cascade_memory.ledger.schema import SCHEMA_VERSION


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnwritable, match="cannot make the folder"):
        CascadeMemory(tmp_path / "file" / "memory", embedder="hashing")
    with pytest.raises(StoreUnwritable):
        CascadeMemory("/proc/cascade-memory", embedder="hashing")


def test_a_truncated_ledger_is_refused_and_left_alone(on_disk, tmp_path: Path):
    memory = on_disk()
    memory.add([(f"task {i}", "s" * 500) for i in range(50)])
    memory.close()
    ledger = tmp_path / "memory" / "ledger.sqlite3"
    cut = ledger.read_bytes()[: ledger.stat().st_size // 2]
    ledger.write_bytes(cut)
    with pytest.raises(StoreCorrupt, match="backup"):
        on_disk().recall("task 3")
    assert ledger.read_bytes() == cut


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"\x00" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes):
    (tmp_path / "ledger.sqlite3").write_bytes(content)
    with pytest.raises(StoreCorrupt, match="not a readable ledger"):
        CascadeMemory(tmp_path, embedder="hashing")
    assert (tmp_path / "ledger.sqlite3").read_bytes() == content


def test_somebody_else_s_database_is_refused_and_left_alone(tmp_path: Path):
    other = sqlite3.connect(tmp_path / "ledger.sqlite3")
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    other.close()
    before = (tmp_path / "ledger.sqlite3").read_bytes()
    with pytest.raises(StoreCorrupt, match="not a ledger of cascade-memory"):
        CascadeMemory(tmp_path, embedder="hashing")
    assert (tmp_path / "ledger.sqlite3").read_bytes() == before


def test_an_emptied_ledger_in_a_used_folder_is_refused(on_disk, tmp_path: Path):
    memory = on_disk()
    memory.reward(memory.recall("task").episode_id, 1.0, solution="s")
    memory.close()
    for file in (tmp_path / "memory").glob("ledger.sqlite3*"):
        file.write_bytes(b"")
    with pytest.raises(StoreCorrupt, match="empty although"):
        on_disk()


def test_a_newer_schema_is_refused(on_disk, tmp_path: Path):
    on_disk().close()
    connection = sqlite3.connect(tmp_path / "memory" / "ledger.sqlite3")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(SchemaTooNew, match="upgrade cascade-memory"):
        on_disk()


@pytest.mark.parametrize(
    ("path", "said"),
    [*((one, "path must name a folder") for one in ("", "  ", 5, b"bytes")), ("a\x00b", "path names no file")],
)
def test_a_path_that_names_no_folder_is_refused(path: object, said: str):
    with pytest.raises(InvalidInput, match=said):
        CascadeMemory(path, embedder="hashing")  # type: ignore[arg-type]
