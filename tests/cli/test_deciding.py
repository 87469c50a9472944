"""People decide on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.cli import main


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "memory")


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_people_decide_on_the_command_line(folder: str, capsys: pytest.CaptureFixture[str]):
    with CascadeMemory(folder, embedder="hashing") as memory:
        case_id = memory.add("cool some mug", "oven")
        one, other = (memory.review.propose(f"task {number}", "shelf") for number in range(2))
        names = {seen.id: f"{seen.id}@{seen.fingerprint}" for seen in memory.review.to_judge()}
    made = _json(
        capsys, "review", "correct", folder, "--id", case_id, "--solution", "fridge", "--note", "ovens heat", "--actor", "ann"
    )
    assert _json(capsys, "review", "confirm", folder, "--episode", names[one], "--actor", "ann")["case"]
    assert _json(capsys, "review", "reject", folder, "--episode", names[other], "--actor", "ann") == {"rejected": other}
    assert main(["review", "confirm", folder, "--episode", names[other]]) == 2
    assert main(["review", "confirm", folder, "--episode", other]) == 2
    for verb in ("pin", "unpin", "hide", "unhide"):
        assert _json(capsys, "review", verb, folder, "--case", made["case"], "--actor", "ann")["changed"]
    found = _json(capsys, "review", "audit", folder)
    assert [entry["action"] for entry in found] == [
        *("unhide", "hide", "unpin", "pin", "reject", "confirm", "correct", "add"),
    ]
    assert {entry["actor"] for entry in found} == {"ann", None}
    assert _json(capsys, "review", "undo", folder, "--entry", found[0]["id"], "--actor", "bob") == {"undone": found[0]["id"]}
    assert main(["review", "undo", folder, "--entry", found[0]["id"]]) == 2
    assert "taken back before" in capsys.readouterr().err
    assert main(["review", "audit", folder, "--limit", "3"]) == 0
    shown = capsys.readouterr().out
    assert "bob" in shown
    assert "3 entries" in shown


def test_who_acts_is_the_login_name_unless_said(folder: str, capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "carl")
    with CascadeMemory(folder, embedder="hashing") as memory:
        case_id = memory.add("cool some mug", "oven")
    assert _json(capsys, "data", "forget", folder, "--case", case_id, "--dry-run") == {
        "would_forget": {"cases": 1, "episodes": 0, "recalls": 0, "outcomes": 0}
    }
    _json(capsys, "review", "hide", folder, "--case", case_id)
    assert _json(capsys, "review", "audit", folder)[0]["actor"] == "carl"
