"""Warnings are listed on the command line, and people decide about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from warned import CALL, about_to, fail, mistaken

from cascade_memory import CascadeMemory
from cascade_memory.cli import main

TASK = "list the names of all customers"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        fail(memory, TASK, mistaken("nme"), actor="ann")
        fail(memory, "heat an egg", mistaken("pan"), source="human")
    return str(tmp_path / "memory")


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_warnings_are_listed(folder: str, capsys: pytest.CaptureFixture[str]):
    found = _json(capsys, "warnings", "list", folder)
    assert [(one["happened"], one["source"], one["state"], one["times"]) for one in found] == [
        ("no such column: pan", "human", "active", 1),
        ("no such column: nme", "env", "active", 1),
    ]
    assert found[0]["tally"]["warned"] == 0
    assert main(["warnings", "list", folder, "--limit", "1"]) == 0
    printed = capsys.readouterr().out
    assert f"{found[0]['id']}\n  state     active\n  task      heat an egg" in printed
    assert "--limit N and --all show the other 1" in printed
    assert main(["warnings", "list", folder, "--all"]) == 0
    assert "runs of   ann" in capsys.readouterr().out


def test_what_came_of_warning_is_counted(folder: str, capsys: pytest.CaptureFixture[str]):
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        memory.acting(actor="ann").warnings.restore(memory.warnings.all(near=TASK)[0].id)
        advice = about_to(memory, TASK, **CALL)
        assert advice is not None
        memory.reward(advice.episode_id, 1.0, solution=[mistaken("name", seen="3 rows")], source="env")
    assert main(["warnings", "list", folder]) == 0
    assert "warned    in 1 episode, 0 repeated it, mean reward 1.000" in capsys.readouterr().out


@pytest.mark.slow
def test_people_decide_about_warnings(folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("getpass.getuser", lambda: "carl")
    warning = _json(
        capsys,
        "warnings",
        "list",
        folder,
    )[1]["id"]
    about = (folder, "--warning", warning)
    assert _json(capsys, "warnings", "retire", *about, "--note", "the table has changed") == {
        "retire": warning,
        "changed": True,
    }
    assert [one["id"] for one in _json(capsys, "warnings", "list", folder, "--state", "retired")] == [warning]
    assert _json(capsys, "warnings", "retire", *about)["changed"] is False
    assert _json(capsys, "warnings", "advise", *about, "--advice", "the column is called name", "--by", "ann")["changed"]
    assert _json(capsys, "warnings", "restore", *about, "--by", "ann")["changed"]
    (found,) = [one for one in _json(capsys, "warnings", "list", folder) if one["id"] == warning]
    assert (found["state"], found["advice"]) == ("active", "the column is called name")
    log = _json(capsys, "review", "audit", folder)
    assert [(one["action"], one["actor"], one["note"]) for one in log] == [
        ("restore", "ann", None),
        ("advise", "ann", None),
        ("retire", "carl", "the table has changed"),
    ]
    assert _json(capsys, "review", "undo", folder, "--entry", log[1]["id"]) == {"undone": log[1]["id"]}
    assert main(["warnings", "list", folder]) == 0
    assert "the column is called name" not in capsys.readouterr().out
    assert main(["warnings", "retire", *about]) == 0
    assert capsys.readouterr().out == "done\n"
    assert main(["warnings", "retire", *about]) == 0
    assert capsys.readouterr().out == "nothing to do: it was so before\n"


def test_mistakes_are_named(folder: str, capsys: pytest.CaptureFixture[str]):
    warning = _json(capsys, "warnings", "list", folder)[0]["id"]
    for arguments in (["retire", folder], ["advise", folder, "--warning", warning], ["list", folder, "--limit", "0"]):
        with pytest.raises(SystemExit) as refused:
            main(["warnings", *arguments])
        assert refused.value.code == 2
    capsys.readouterr()
    for command, more in (("retire", ()), ("restore", ()), ("advise", ("--advice", "x"))):
        assert main(["warnings", command, folder, "--warning", "nobody", *more]) == 2
        assert "there is no warning 'nobody'" in capsys.readouterr().err
    assert main(["warnings", "advise", folder, "--warning", warning, "--advice", " "]) == 2
    assert main(["warnings", "list", folder, "--namespace", "other"]) == 2
    assert "default" in capsys.readouterr().err


def test_a_memory_without_warnings_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.add("cool some mug", "fridge")
    assert main(["warnings", "list", str(tmp_path / "memory")]) == 0
    assert capsys.readouterr().out == "0 warnings\n"
