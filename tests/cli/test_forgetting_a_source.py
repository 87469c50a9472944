"""``data forget --actor`` shows what it would do, asks, and says what came back."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory, Retention
from cascade_memory.cli import main


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def folder(tmp_path: Path) -> str:
    place = str(tmp_path / "memory")
    with CascadeMemory(place, embedder="hashing", learn="inline", retention=Retention(max_cases=20)) as memory:
        for actor in ("ann", "mallory"):
            for i in range(20):
                recall = memory.acting(actor=actor).recall(f"{actor} has the question {i} about {actor}{i % 5}")
                recall.reward(1.0, solution=f"{actor} says {i}")
        recall = memory.acting(actor="bob").recall("mallory has the question 19 about mallory4", k=1)
        if recall.cases:
            recall.reward(1.0, solution="bob says 1")
    return place


def _json(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, object]:
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_preview_says_what_would_go_and_come_back(folder: str, capsys: pytest.CaptureFixture[str]):
    assert main(["data", "forget", folder, "--actor", "mallory", "--since", "1d", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "20 episodes, 20 recalls, 20 outcomes" in said
    assert "would come back:" in said
    would = _json(capsys, "data", "forget", folder, "--actor", "mallory", "--channel", "python", "--dry-run")
    assert set(would) == {"would_forget", "would_bring_back", "made_after"}
    assert _json(capsys, "data", "forget", folder, "--actor", "mallory", "--until", "1d", "--dry-run")["would_forget"] == {
        **{"cases": 0, "episodes": 0},
        **{"recalls": 0, "outcomes": 0},
    }


@pytest.mark.slow
def test_it_asks_first(folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", _Terminal("no\n"))
    assert main(["data", "forget", folder, "--actor", "mallory"]) == 2
    said = capsys.readouterr()
    assert "forget all that came from this source in namespace 'default'" in said.out
    assert "nothing was forgotten" in said.err
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert main(["data", "forget", folder, "--actor", "mallory"]) == 2
    assert "pass --yes" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", _Terminal("yes\n"))
    assert main(["data", "forget", folder, "--actor", "mallory", "--by", "carl"]) == 0
    assert "cases brought back" in capsys.readouterr().out
    with CascadeMemory(folder, embedder="hashing") as memory:
        assert {row.actor for row in memory.sources.all()} <= {"ann", "bob"}
        assert next(memory.review.audit()).actor == "carl"


def test_with_yes_it_does_not_ask(folder: str, capsys: pytest.CaptureFixture[str]):
    receipt = _json(capsys, "data", "forget", folder, "--actor", "mallory", "--yes")
    assert receipt["episodes"] == 20
    assert receipt["brought_back"]
    assert _json(capsys, "data", "forget", folder, "--actor", "mallory", "--yes")["episodes"] == 0


def test_what_had_to_make_room_is_listed(folder: str, capsys: pytest.CaptureFixture[str]):
    listed = _json(capsys, "review", "expired", folder, "--evicted")["expired"]
    assert isinstance(listed, list)
    assert {one["why"] for one in listed} == {"evicted"}
    assert _json(capsys, "review", "expired", folder)["expired"] == []
    assert main(["review", "expired", folder, "--evicted"]) == 0
    assert f"evicted, and not deleted yet: {len(listed)}" in capsys.readouterr().out
    chosen = listed[-1]["id"]
    assert _json(capsys, "review", "expired", folder, "--bring-back", chosen)["brought_back"] == [chosen]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "forget needs one of"),
        (["--actor", "mallory", "--case", "x"], "forget needs one of"),
        (["--since", "1d", "--everything"], "forget needs one of"),
        (["--since", "some day", "--yes"], "since"),
    ],
)
def test_what_makes_no_sense_is_refused(folder: str, options: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    assert main(["data", "forget", folder, *options]) == 2
    assert said in capsys.readouterr().err
