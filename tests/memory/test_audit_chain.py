"""Each entry of the audit log has a digest of itself and of the entry before: what was changed in the file shows."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from in_databases import rows_of

from cascade_memory import CascadeMemory
from cascade_memory.cli import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with five entries, one of which has lost its note."""
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        kept = memory.acting(actor="ann").add("cool some mug", "fridge")
        wrong = memory.acting(actor="bob").add("heat some egg", "freezer")
        memory.acting(actor="ann").review.correct(wrong, "microwave", note="an egg in the freezer")
        memory.acting(actor="ann").cases.hide(kept)
        memory.acting(actor="ann").forget([case.id for case in memory.cases.all() if case.query == "heat some egg"])
        assert all(entry.note is None for entry in memory.review.audit())
    return tmp_path / "m"


def _check(folder: Path, *, fix: bool = False) -> tuple[bool, str]:
    with CascadeMemory(folder, embedder="hashing") as memory:
        (found,) = [check for check in memory.data.examine(fix=fix) if check.name == "audit log"]
    return found.ok, found.detail


def _edit(folder: Path, *statements: str) -> None:
    with contextlib.closing(rows_of(folder)) as ledger:
        for statement in statements:
            ledger.execute(statement)
        ledger.commit()


def test_an_untouched_log_fits(folder: Path):
    ok, said = _check(folder)
    assert ok
    assert said.startswith("5 entries fit; the last digest is ")


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("UPDATE action SET actor = 'eve' WHERE key = 3", 3),
        ("UPDATE action SET actor = NULL WHERE key = 1", 1),
        ("UPDATE action SET at = at + 60 WHERE key = 2", 2),
        ("UPDATE action SET counts = '{}' WHERE key = 5", 5),
        ("UPDATE action SET kind = 'pin' WHERE key = 4", 4),
        ("UPDATE action SET digest = NULL WHERE key = 3", 3),
        ("UPDATE action SET digest = 'zz' WHERE key = 3", 3),
        ("DELETE FROM action WHERE key = 3", 4),
        ("DELETE FROM action WHERE key = 1", 2),
        ("UPDATE action SET key = 9 WHERE key = 2", 3),
    ],
)
def test_the_first_entry_that_does_not_fit_is_named(folder: Path, statement: str, number: int):
    _edit(folder, statement)
    ok, said = _check(folder)
    assert not ok
    assert f"(number {number}) does not fit the entries before it" in said


def test_a_note_may_go(folder: Path):
    _edit(folder, "UPDATE action SET note = 'a note' WHERE key = 2")
    assert _check(folder)[0]


def test_a_log_that_was_mended_says_so_for_good(folder: Path, capsys: pytest.CaptureFixture[str]):
    _edit(folder, "DELETE FROM action WHERE key = 2")
    assert main(["data", "doctor", str(folder)]) == 1
    assert "does not fit" in " ".join(capsys.readouterr().out.replace("│", " ").split())
    ok, said = _check(folder, fix=True)
    assert ok
    assert "sealed again on" in said
    ok, said = _check(folder)
    assert ok
    assert "4 entries fit" in said
    assert "sealed again on" in said
    _edit(folder, "UPDATE action SET actor = 'eve' WHERE key = 4")
    assert not _check(folder)[0]


def test_entries_of_an_older_version_have_no_digest_and_new_ones_do(folder: Path):
    _edit(folder, "UPDATE action SET digest = NULL", "DELETE FROM meta WHERE key = 'audit_sealed_from'")
    assert _check(folder) == (True, "no entry has a digest")
    with CascadeMemory(folder, embedder="hashing") as memory:
        memory.acting(actor="ann").add("dry some cup", "towel")
        memory.acting(actor="ann").add("dry some plate", "towel")
    ok, said = _check(folder)
    assert ok
    assert said.startswith("2 entries fit")
    _edit(folder, "UPDATE action SET actor = 'eve' WHERE key = 6")
    assert "(number 6)" in _check(folder)[1]


@pytest.mark.parametrize(
    "statements",
    [
        ("UPDATE action SET digest = NULL, actor = 'eve'",),
        ("UPDATE action SET digest = NULL", "DELETE FROM action WHERE key < 5"),
        ("DELETE FROM action",),
    ],
    ids=["edited", "few left", "none left"],
)
def test_a_log_without_any_digest_does_not_pass_for_one_of_an_older_version(folder: Path, statements: tuple[str, ...]):
    _edit(folder, *statements)
    ok, said = _check(folder)
    assert not ok
    assert "entries had digests, and none has one now" in said
    ok, said = _check(folder, fix=True)
    assert ok
    assert "sealed again on" in said
    with CascadeMemory(folder, embedder="hashing") as memory:
        memory.acting(actor="ann").add("dry some cup", "towel")
    ok, said = _check(folder)
    assert ok
    assert "entries fit" in said
    assert "sealed again on" in said
    _edit(folder, "UPDATE action SET digest = NULL")
    assert not _check(folder)[0]


def test_that_a_log_was_begun_is_known_in_every_copy(folder: Path, tmp_path: Path):
    with CascadeMemory(folder, embedder="hashing") as memory:
        memory.data.backup(tmp_path / "backup")
        memory.data.export(tmp_path / "all.jsonl")
    with CascadeMemory(tmp_path / "imported", embedder="hashing") as other:
        other.data.import_(tmp_path / "all.jsonl")
    for copy in (tmp_path / "backup", tmp_path / "imported"):
        assert _check(copy)[0]
        _edit(copy, "UPDATE action SET digest = NULL")
        assert not _check(copy)[0]


def test_a_clock_that_was_set_back_does_not_break_the_log_for_good(folder: Path):
    _edit(folder, "UPDATE action SET at = 99999999999 WHERE key = 5")
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert not all(check.ok for check in memory.data.examine())
        memory.data.examine(fix=True)
        assert all(check.ok for check in memory.data.examine())
