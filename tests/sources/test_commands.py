"""Actors are put into quarantine and released on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.cli import main


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        for actor in ("mallory", "ann"):
            memory.acting(actor=actor).recall(f"cool the mug of {actor}").reward(1.0, solution=f"as {actor} says")
    return str(tmp_path / "memory")


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_actor_is_put_into_quarantine_and_released(folder: str, capsys: pytest.CaptureFixture[str]):
    about = (folder, "--actor", "mallory", "--by", "ann")
    assert _json(capsys, "sources", "quarantine", *about, "--note", "made this up") == {"quarantine": "mallory", "cases": 1}
    (entry,) = _json(capsys, "review", "audit", folder)
    assert [entry[name] for name in ("action", "subject", "actor", "note")] == ["quarantine", "mallory", "ann", "made this up"]
    (case,) = [one for one in _json(capsys, "show", "cases", folder) if one["actor"] == "mallory"]
    assert main(["review", "unhide", folder, "--case", case["id"]]) == 0
    assert "its actor is in quarantine" in capsys.readouterr().out
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert [found.solution for found in memory.cases.search("cool the mug", k=5).cases] == ["as ann says"]
    assert main(["sources", "quarantine", *about]) == 0
    assert "0 cases are no longer shown" in capsys.readouterr().out
    assert main(["sources", "release", *about]) == 0
    assert "1 case is shown again" in capsys.readouterr().out
    entry, *_ = _json(capsys, "review", "audit", folder)
    assert _json(capsys, "review", "undo", folder, "--entry", entry["id"]) == {"undone": entry["id"]}
    assert {one["actor"]: one["standing"] for one in _json(capsys, "sources", "standings", folder)}["mallory"] == "quarantined"


def test_standings_are_listed_the_worst_first(folder: str, capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "carl")
    _json(capsys, "sources", "quarantine", folder, "--actor", "mallory")
    assert _json(capsys, "review", "audit", folder)[0]["actor"] == "carl"
    found = _json(capsys, "sources", "standings", folder)
    assert [(one["actor"], one["standing"], one["share"]) for one in found][:1] == [("mallory", "quarantined", 0.0)]
    assert found[0]["why"] == "its cases are in quarantine"
    assert main(["sources", "standings", folder]) == 0
    printed = capsys.readouterr().out
    assert "mallory\n  standing  quarantined: its cases are in quarantine\n  shown     in at most 0 % of recalls" in printed
    assert "2 actors" in printed
    assert "log odds" not in printed
    assert "  reports   nothing speaks for or against them yet" in printed


def test_mistakes_are_named(folder: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as refused:
        main(["sources", "quarantine", folder])
    assert refused.value.code == 2
    assert main(["sources", "quarantine", folder, "--actor", ""]) == 2
    assert main(["sources", "release", folder, "--actor", "mallory", "--namespace", "other"]) == 2
    assert main(["sources", "standings", folder, "--namespace", "other"]) == 2
    assert "default" in capsys.readouterr().err
