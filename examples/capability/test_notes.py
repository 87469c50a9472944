"""Notes that people pin to cases: the verbs, what becomes of the rows, the command and the page."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cascade_memory import CascadeMemory, Retention, restore
from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput, UnknownCase
from cascade_memory.inspector import app

TEXT = "only for the old printer"


def _opened(path: Path, **options: Any) -> CascadeMemory:
    return CascadeMemory(path, embedder="hashing", learn="inline", **options)


def _texts(memory: CascadeMemory) -> list[str]:
    return [note.text for note in memory.notes.all()]


def _is_well(memory: CascadeMemory) -> bool:
    return all(check.ok for check in memory.data.examine())


def _edited(folder: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "ledger.sqlite3")) as ledger, ledger:
        for statement in statements:
            ledger.execute(statement)


@pytest.fixture
def memory() -> Iterator[CascadeMemory]:
    with CascadeMemory(embedder="hashing", learn="inline").acting(actor="ann") as memory:
        yield memory


@pytest.fixture
def case(memory: CascadeMemory) -> str:
    return str(memory.add("the printer jams", "pull the tray"))


# -- verbs ---------------------------------------------------------------------------------------------------------------


def test_a_note_says_who_wrote_what_and_when(memory: CascadeMemory, case: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("time.time", lambda: 1.9e9)
    note_id = memory.acting(actor="bob").notes.pin(case, TEXT)
    (note,) = memory.notes.of(case)
    assert (note.id, note.case_id, note.text, note.actor, note.at) == (note_id, case, TEXT, "bob", 1.9e9)
    with pytest.raises(AttributeError):
        note.text = "another"  # type: ignore[misc]


def test_notes_of_a_case_begin_with_the_oldest_and_all_notes_with_the_newest(memory: CascadeMemory, case: str):
    other = str(memory.add("the printer smokes", "pull the plug"))
    for of, text in ((case, "one"), (other, "two"), (case, "three")):
        memory.notes.pin(of, text)
    assert [note.text for note in memory.notes.of(case)] == ["one", "three"]
    assert _texts(memory) == ["three", "two", "one"]
    assert [note.text for note in memory.notes.all(limit=2)] == ["three", "two"]


def test_an_unpinned_note_is_gone(memory: CascadeMemory, case: str):
    first, _ = memory.notes.pin(case, "one"), memory.notes.pin(case, "two")
    memory.notes.unpin(first)
    assert _texts(memory) == ["two"]
    with pytest.raises(InvalidInput, match="there is no note"):
        memory.notes.unpin(first)


def test_notes_of_another_namespace_are_out_of_reach(memory: CascadeMemory, case: str):
    note = memory.notes.pin(case, TEXT)
    elsewhere = memory.acting(namespace="elsewhere")
    assert elsewhere.notes.all() == []
    with pytest.raises(UnknownCase):
        elsewhere.notes.of(case)
    with pytest.raises(UnknownCase):
        elsewhere.notes.pin(case, TEXT)
    with pytest.raises(InvalidInput, match="there is no note"):
        elsewhere.notes.unpin(note)


@pytest.mark.parametrize("text", ["", " ", "x" * 2_001, 7, None, "\ud800"])
def test_a_text_that_cannot_be_a_note_is_refused(memory: CascadeMemory, case: str, text: Any):
    with pytest.raises(InvalidInput, match="text"):
        memory.notes.pin(case, text)
    assert memory.notes.all() == []


def test_what_names_nothing_is_refused(memory: CascadeMemory):
    wrong: Any
    for wrong in (None, 7, "", "x" * 300):
        with pytest.raises(InvalidInput):
            memory.notes.of(wrong)
        with pytest.raises(InvalidInput):
            memory.notes.pin(wrong, TEXT)
        with pytest.raises(InvalidInput):
            memory.notes.unpin(wrong)
    for wrong in (0, -1, True, "x", 1.5, None, 2**60):
        with pytest.raises(InvalidInput, match="limit"):
            memory.notes.all(limit=wrong)
    with pytest.raises(UnknownCase, match="there is no case"):
        memory.notes.pin("nobody", TEXT)
    with pytest.raises(UnknownCase, match="there is no case"):
        memory.notes.of("nobody")


def test_a_secret_becomes_a_placeholder(memory: CascadeMemory, case: str):
    memory.notes.pin(case, "the password=hunter2hunter2 opens it")
    assert _texts(memory) == ["the password=[secret:password#1] opens it"]


def test_a_text_that_placeholders_make_too_long_is_cut(memory: CascadeMemory, case: str):
    memory.notes.pin(case, "password=hunter2x ".ljust(2_000, "y"))
    (text,) = _texts(memory)
    assert text.startswith("password=[secret:password#1] yyy")
    assert len(text) == 2_000
    assert _is_well(memory)


@pytest.mark.parametrize("value", ["text = x'ff'", "at = 'x'", "at = -9e300", "actor = x'00'"])
def test_a_row_that_somebody_has_edited_is_left_out_and_mended(tmp_path: Path, value: str, capsys: pytest.CaptureFixture[str]):
    with _opened(tmp_path / "m") as memory:
        case = str(memory.add("the printer jams", "pull the tray"))
        memory.notes.pin(case, TEXT)
        memory.notes.pin(case, "another")
    _edited(tmp_path / "m", f"UPDATE note SET {value} WHERE text = 'another'")
    assert main(["notes", "list", str(tmp_path / "m"), "--json"]) == 0
    assert [note["text"] for note in json.loads(capsys.readouterr().out)] == [TEXT]
    with _opened(tmp_path / "m") as memory:
        with TestClient(app(memory), base_url="http://localhost") as browser:
            assert TEXT in browser.get("/notes").text
        assert not _is_well(memory)
        memory.data.examine(fix=True)
        assert _texts(memory) == [TEXT]
        assert _is_well(memory)


def test_a_text_that_is_none_any_more_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with _opened(tmp_path / "m") as memory:
        memory.notes.pin(str(memory.add("the printer jams", "pull the tray")), TEXT)
    _edited(tmp_path / "m", "UPDATE note SET text = CAST(x'6cff80' AS TEXT)")
    assert main(["notes", "list", str(tmp_path / "m")]) == 1
    assert "cascade-memory data doctor --fix" in capsys.readouterr().err


# -- rows ----------------------------------------------------------------------------------------------------------------


def test_notes_go_with_their_case(memory: CascadeMemory, case: str):
    other = str(memory.add("the printer smokes", "pull the plug"))
    memory.notes.pin(case, "one")
    memory.notes.pin(other, "two")
    memory.forget(case)
    assert _texts(memory) == ["two"]
    assert _is_well(memory)


def test_notes_go_with_the_episode_that_their_case_came_of(memory: CascadeMemory):
    episode = memory.recall("the printer jams").episode_id
    memory.notes.pin(str(memory.reward(episode, 1.0, solution="pull the tray")), TEXT)
    memory.forget(episode_id=episode)
    assert memory.notes.all() == []


def test_notes_go_with_their_namespace(memory: CascadeMemory, case: str):
    memory.notes.pin(case, "stays")
    elsewhere = memory.acting(namespace="elsewhere")
    elsewhere.notes.pin(str(elsewhere.add("the printer smokes", "pull the plug")), "goes")
    elsewhere.forget(everything=True)
    assert elsewhere.notes.all() == []
    assert _texts(memory) == ["stays"]
    assert _is_well(memory)


@pytest.mark.parametrize("everything", [False, True])
def test_a_purge_leaves_no_byte_of_a_note(tmp_path: Path, everything: bool):
    folder = tmp_path / "m"

    def holding() -> list[Path]:
        return [file for file in folder.rglob("*") if file.is_file() and TEXT.encode() in file.read_bytes()]

    with _opened(folder) as memory:
        case = str(memory.add("the printer jams", "pull the tray"))
        memory.notes.pin(case, TEXT)
        assert holding()
        receipt = memory.forget(None if everything else case, everything=everything, purge=True)
        assert receipt.purged
        assert holding() == []
    assert holding() == []


def test_notes_come_back_with_a_case_that_had_made_room(tmp_path: Path):
    with _opened(tmp_path / "m", retention=Retention(max_cases=1)) as memory:
        memory.notes.pin(str(memory.add("the printer jams", "pull the tray")), TEXT)
        memory.add("the printer smokes", "pull the plug")
        assert memory.notes.all() == []
        (gone,) = memory.cases.expired(why="evicted")
        assert _is_well(memory)
        memory.cases.bring_back(gone.id)
        assert _texts(memory) == [TEXT]
        memory.forget(gone.id)
        assert memory.notes.all() == []
        assert _is_well(memory)


def test_notes_do_not_say_anything_of_a_corrected_answer(memory: CascadeMemory):
    case = memory.reward(memory.recall("the printer jams").episode_id, 1.0, solution="pull the tray")
    memory.notes.pin(str(case), TEXT)
    memory.review.correct(str(case), "call a technician")
    assert memory.notes.all() == []
    memory.review.undo(next(iter(memory.review.audit(newest_first=True))).id)
    assert memory.notes.all() == []  # the case is made anew
    assert _is_well(memory)


def test_notes_of_somebody_are_forgotten_with_all_that_they_wrote(tmp_path: Path):
    folder = tmp_path / "m"
    with _opened(folder).acting(actor="ann") as memory:
        case = str(memory.add("the printer jams", "pull the tray"))
        memory.notes.pin(case, "of ann")
        memory.acting(actor="bobby").notes.pin(case, TEXT)
        assert memory.forget(by_actor="bobby", purge=True).purged
        assert _texts(memory) == ["of ann"]
    assert not [file for file in folder.rglob("*") if file.is_file() and TEXT.encode() in file.read_bytes()]


def test_an_export_brings_notes_along_once(tmp_path: Path):
    with _opened(tmp_path / "m").acting(actor="ann") as memory:
        case, other = (str(memory.add(f"task {n}", f"fix {n}")) for n in range(2))
        for of, text in ((case, "one"), (other, "two"), (case, "three")):
            memory.notes.pin(of, text)
        before = memory.notes.all()
        memory.data.export(tmp_path / "exported.jsonl")
    with _opened(tmp_path / "other") as memory:
        memory.data.import_(tmp_path / "exported.jsonl")
        memory.data.import_(tmp_path / "exported.jsonl")
        assert memory.notes.all() == before
        assert _is_well(memory)


@pytest.mark.parametrize(
    ("text", "arrives"), [("password=hunter2hunter2", "password=[secret:password#1]"), ("x" * 2_001, None)]
)
def test_an_import_treats_a_text_as_pin_does(tmp_path: Path, text: str, arrives: str | None):
    with _opened(tmp_path / "m") as memory:
        memory.notes.pin(str(memory.add("the printer jams", "pull the tray")), TEXT)
        memory.data.export(tmp_path / "exported.jsonl")
    changed = (tmp_path / "exported.jsonl").read_text(encoding="utf-8").replace(TEXT, text)
    (tmp_path / "exported.jsonl").write_text(changed, encoding="utf-8")
    with _opened(tmp_path / "other") as memory:
        if arrives is None:
            with pytest.raises(InvalidInput, match="text has 2,001 characters"):
                memory.data.import_(tmp_path / "exported.jsonl")
        else:
            memory.data.import_(tmp_path / "exported.jsonl")
        assert _texts(memory) == ([arrives] if arrives else [])


def test_a_backup_holds_notes(tmp_path: Path):
    with _opened(tmp_path / "m") as memory:
        memory.notes.pin(str(memory.add("the printer jams", "pull the tray")), TEXT)
        memory.data.backup(tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    with _opened(tmp_path / "restored") as memory:
        assert _texts(memory) == [TEXT]


def test_a_memory_that_was_made_before_notes_opens(tmp_path: Path):
    with _opened(tmp_path / "m") as memory:
        case = str(memory.add("the printer jams", "pull the tray"))
    _edited(tmp_path / "m", "DROP TABLE note", "DELETE FROM sqlite_sequence WHERE name = 'note'")
    with _opened(tmp_path / "m") as memory:
        assert memory.notes.all() == []
        memory.notes.pin(case, TEXT)
        assert _texts(memory) == [TEXT]
        assert _is_well(memory)


# -- the command -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with _opened(tmp_path / "m") as memory:
        memory.add("the printer jams", "pull the tray")
    return str(tmp_path / "m")


def _case_of(folder: str) -> str:
    with _opened(Path(folder)) as memory:
        return next(iter(memory.cases.all())).id


def test_the_command_pins_lists_and_unpins(folder: str, capsys: pytest.CaptureFixture[str]):
    case = _case_of(folder)
    assert main(["notes", "pin", folder, "--case", case, "--text", TEXT, "--actor", "ann", "--json"]) == 0
    pinned = json.loads(capsys.readouterr().out)
    assert main(["notes", "list", folder, "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert pinned == {"case": case, "note": listed["id"]}
    assert {**listed, "at": 0} == {"id": listed["id"], "case_id": case, "text": TEXT, "actor": "ann", "at": 0}
    assert main(["notes", "unpin", folder, "--note", listed["id"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"unpinned": listed["id"]}
    assert main(["notes", "list", folder, "--case", case, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_the_command_speaks_in_sentences_and_tables(folder: str, capsys: pytest.CaptureFixture[str]):
    case = _case_of(folder)
    assert main(["notes", "pin", folder, "--case", case, "--text", "first\nsecond"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("pinned note ")
    assert main(["notes", "list", folder, "--case", case]) == 0
    assert not [line for line in capsys.readouterr().out.splitlines() if line.startswith("second")]
    assert main(["notes", "unpin", folder, "--note", said.split()[2]]) == 0
    assert capsys.readouterr().out.startswith("deleted note ")


@pytest.mark.parametrize(
    "words",
    [["list", "--limit", "0"], ["list", "--case", "x"], ["pin", "--case", "x", "--text", "y"], ["unpin", "--note", "x"]],
)
def test_the_command_refuses_what_the_verbs_refuse(folder: str, capsys: pytest.CaptureFixture[str], words: list[str]):
    assert main(["notes", words[0], folder, *words[1:]]) == 2
    assert capsys.readouterr().err


# -- the page ------------------------------------------------------------------------------------------------------------


def test_the_page_lists_notes_with_their_cases_and_escapes_their_texts(memory: CascadeMemory, case: str):
    memory.acting(actor="<i>eve</i>").notes.pin(case, "<script>alert('x')</script>")
    with TestClient(app(memory), base_url="http://localhost") as browser:
        page = browser.get("/notes")
        assert page.status_code == 200
        assert "&lt;script&gt;alert(" in page.text
        assert "&lt;i&gt;eve&lt;/i&gt;" in page.text
        assert "<script>alert" not in page.text
        assert "<i>eve" not in page.text
        _, _, after = page.text.partition("<h1>Notes</h1>")
        link = after.split('href="')[1].split('"')[0].replace("&amp;", "&")
        assert case in link
        shown = browser.get(link if link.startswith("/") else f"/{link}")
        assert shown.status_code == 200
        assert "pull the tray" in shown.text


def test_the_page_is_a_tab_and_says_that_there_are_no_notes(memory: CascadeMemory):
    with TestClient(app(memory), base_url="http://localhost") as browser:
        assert "No case has a note yet." in browser.get("/notes").text
        assert ">Notes</a>" in browser.get("/cases").text
