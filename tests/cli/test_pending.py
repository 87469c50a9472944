"""What agents reported, shown to whoever is to vouch for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.cli import main


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with CascadeMemory(tmp_path / "memory", embedder="hashing") as memory:
        memory.review.propose("cool some mug", "put it into the fridge and wait " + 200 * "long " + "enough")
        memory.review.propose("heat some mug", "microwave it")
    return str(tmp_path / "memory")


def test_it_is_readable(folder: str, capsys: pytest.CaptureFixture[str]):
    assert main(["review", "pending", folder]) == 0
    printed = capsys.readouterr().out
    assert printed.count("long") > 80
    assert "--json prints them whole" in printed
    assert main(["review", "pending", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["waiting"][0]["solution"].endswith("enough")


def test_one_is_confirmed_and_one_rejected(folder: str, capsys: pytest.CaptureFixture[str]):
    assert main(["review", "pending", folder, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["waiting"]
    confirmed = f"{second['episode_id']}@{second['fingerprint']}"
    assert main(["review", "pending", folder, "--confirm", confirmed, "--reject", first["episode_id"]]) == 0
    assert "1 confirmed, 1 rejected" in capsys.readouterr().out
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert memory.review.reported() == []
        (found,) = memory.cases.search("heat some mug").cases
        assert found.solution == "microwave it"


def test_a_mistyped_path_is_not_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["serve", "mcp", "--read-only", "--path", str(tmp_path / "memroy")]) == 2
    assert "there is no memory" in capsys.readouterr().err
    assert not (tmp_path / "memroy").exists()


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_report_that_makes_no_case_is_confirmed_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        episode = memory.recall("task").episode_id
        memory.reward(episode, 0.6, solution="s", source="agent")
        (seen,) = memory.review.reported()
    assert main(["review", "pending", str(tmp_path / "m"), "--confirm", f"{seen.id}@{seen.fingerprint}"]) == 0
    assert "1 of the confirmed reports stored no case" in capsys.readouterr().out
    assert main(["review", "expired", str(tmp_path / "m"), "--namespace", "nobody's"]) == 2
