"""Who wrote what, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.cli import main
from cascade_memory.domain.actions import login_name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        memory.acting(actor="ann", channel="mcp").add("cool some mug", "fridge")
        memory.acting(actor="bob", channel="langchain").recall("heat some egg").reward(1.0, solution="oven", source="user")
        memory.add("dry some cup", "towel")
    return str(tmp_path / "memory")


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_lists_are_filtered_by_source_and_time(folder: str, capsys: pytest.CaptureFixture[str]):
    for arguments, tasks in (
        (("--actor", "ann"), ["cool some mug"]),
        (("--actor", ""), ["dry some cup"]),
        (("--channel", "langchain"), ["heat some egg"]),
        (("--trust", "user"), ["heat some egg"]),
        (("--since", "1h", "--actor", "bob"), ["heat some egg"]),
        (("--until", "1h"), []),
        (("--since", "2999-01-01"), []),
    ):
        assert [one["task"] for one in _json(capsys, "show", "cases", folder, *arguments)] == tasks, arguments
    (found,) = _json(capsys, "show", "episodes", folder, "--actor", "bob", "--since", "1d")
    assert (found["actor"], found["channel"], found["source"]) == ("bob", "langchain", "user")
    assert _json(capsys, "show", "episodes", folder, "--actor", "ann") == []
    assert main(["show", "cases", folder, "--since", "some day"]) == 2
    assert "since must be" in capsys.readouterr().err


def test_a_case_says_who_made_it(folder: str, capsys: pytest.CaptureFixture[str]):
    (case,) = _json(capsys, "show", "cases", folder, "--actor", "bob")
    assert (case["actor"], case["channel"], case["trust"]) == ("bob", "langchain", "user")
    assert main(["show", "case", folder, case["id"]]) == 0
    shown = capsys.readouterr().out
    assert "made by    bob (langchain)" in shown
    assert "trust      user" in shown
    assert main(["show", "cases", folder]) == main(["show", "episodes", folder]) == 0
    listed = capsys.readouterr().out
    assert "made by   bob (langchain)" in listed
    assert "asked by  bob (langchain)" in listed


def test_sources_and_what_changed(folder: str, capsys: pytest.CaptureFixture[str]):
    rows = {row["actor"]: row for row in _json(capsys, "sources", "list", folder)}
    assert {actor: (row["channel"], row["cases"], row["outcomes"]) for actor, row in rows.items()} == {
        "ann": ("mcp", 1, 0),
        "bob": ("langchain", 1, 1),
        None: ("python", 1, 0),
    }
    assert main(["sources", "list", folder]) == 0
    printed = capsys.readouterr().out
    assert "bob (langchain)\n  cases     1, shown 0 times\n  episodes  1 asked, 1 outcome, mean reward 1.000" in printed
    assert printed.endswith("3 sources\n")
    changes = _json(capsys, "show", "changes", folder, "--since", "1h")
    assert [one["actor"] for one in changes["came"]] == ["ann", "bob", None]
    assert [one["query"] for one in _json(capsys, "show", "changes", folder, "--since", "1h", "--actor", "ann")["came"]] == [
        "cool some mug"
    ]
    assert main(["show", "changes", folder, "--since", "1h"]) == 0
    assert "3 cases came, 0 went" in capsys.readouterr().out
    assert main(["show", "changes", folder, "--since", "0h", "--channel", "cli"]) == 0
    assert "0 cases came, 0 went" in capsys.readouterr().out


def test_what_people_do_here_is_theirs(folder: str, capsys: pytest.CaptureFixture[str]):
    (case,) = _json(capsys, "show", "cases", folder, "--actor", "ann")
    made = _json(capsys, "review", "correct", folder, "--id", case["id"], "--solution", "freezer", "--actor", "carol")["case"]
    (case,) = _json(capsys, "show", "cases", folder, "--actor", "carol")
    assert (case["id"], case["channel"], case["trust"]) == (made, "cli", "human")
    exported = f"{folder}.jsonl"
    assert main(["data", "export", folder, exported]) == main(["data", "import", f"{folder}-2", exported]) == 0
    capsys.readouterr()
    assert _json(capsys, "review", "audit", f"{folder}-2")[0]["actor"] == login_name()
