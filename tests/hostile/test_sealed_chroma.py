"""A seal of Chroma's folder is good only for the very files that this memory closed, where it closed them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from chroma_mutations import copied, marked

from cascade_memory import CascadeMemory
from cascade_memory.domain.sqlite_files import BESIDE
from cascade_memory.stores import folder_files
from cascade_memory.stores.folder_files import is_sealed, seal


def test_a_bit_is_seen_though_the_system_says_that_nothing_was_changed(closed: Path, tmp_path: Path):
    place = copied(closed / "chroma", tmp_path / "chroma")
    before = seal(place)
    for file in sorted(file for file in place.rglob("*") if file.is_file() and file.stat().st_size):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        system, _, after = seal(place).partition("-")
        assert not is_sealed(place, f"{system}-{before.partition('-')[2]}")
        assert is_sealed(place, f"{system}-{after}")


def test_a_folder_from_elsewhere_is_made_anew_though_its_bytes_are_right(
    closed: Path, tmp_path: Path, watched: list[list[str]], monkeypatch: pytest.MonkeyPatch
):
    place = copied(closed, tmp_path / "memory") / "chroma"
    for file in place.rglob("*"):  # a copy may keep all times that can be set
        shutil.copystat(closed / "chroma" / file.relative_to(place), file)
    assert not is_sealed(place, marked(closed).seal)
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="off") as memory:
        memory.sync()
        memory.add("a new task", "new")
        memory.sync()
        assert memory.cases.search("task 7 of kind 49").cases[0].solution == "solution 7"
    assert watched == [[]]
    # A disk brings the numbers and times of its files along; it does not know on which machine it will be.
    before = seal(place)
    assert is_sealed(place, before)
    (tmp_path / "machine-id").write_text("0" * 32)
    monkeypatch.setattr(folder_files, "MACHINE_ID", tmp_path / "machine-id")
    assert not is_sealed(place, before)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_not_sealed(closed: Path, tmp_path: Path):
    place = copied(closed / "chroma", tmp_path / "chroma")
    os.chown(place / "chroma.sqlite3", 12_345, 12_345)
    assert seal(place) == ""


@pytest.mark.parametrize("end", BESIDE)
def test_what_sqlite_would_read_first_is_never_there_when_chroma_was_closed(closed: Path, tmp_path: Path, end: str):
    assert not list((closed / "chroma").rglob(f"*{end}"))
    place = copied(closed / "chroma", tmp_path / "chroma")
    (place / f"chroma.sqlite3{end}").write_bytes(b"x")
    assert seal(place) == ""
