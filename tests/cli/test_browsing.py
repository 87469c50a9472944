"""The commands that show what a memory holds, and those that are careful with it."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cascade_memory import CascadeMemory, Step, Trajectory
from cascade_memory.cli import main
from cascade_memory.cli.main import parser


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="inline") as memory:
        for i in range(25):
            memory.add(f"task {i} " + "with many words " * 20, f"solution {i}", metadata={"user": f"u{i % 2}"})
        memory.acting(namespace="tenant-1").add("of others", "s")
        memory.recall("held", episode_id="open one")
        memory.recall("judged", episode_id="judged one").reward(1.0, solution="s", source="human")
        memory.review.propose("proposed", "its own word")
    return str(tmp_path / "memory")


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def _shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 2
    return capsys.readouterr().err


def test_list_shows_the_newest_cases_with_ids_to_copy(folder: str, capsys: pytest.CaptureFixture[str]):
    printed = _shown(capsys, "show", "cases", folder)
    found = _json(capsys, "show", "cases", folder)
    assert [one["id"] for one in found] == [line for line in printed.splitlines() if not line.startswith(" ")][:-1]
    assert found[0]["task"] == "judged"
    assert printed.endswith("the last 20 cases; --limit N and --all show more\n")
    assert max(map(len, printed.splitlines())) <= 80
    every = _json(capsys, "show", "cases", folder, "--all", "--oldest-first")
    assert [one["solution"] for one in every] == [*(f"solution {i}" for i in range(25)), "s"]
    assert [one["solution"] for one in _json(capsys, "show", "cases", folder, "--limit", "1", "--oldest-first")] == [
        "solution 0"
    ]
    assert len(_json(capsys, "show", "cases", folder, "--where", '{"user": "u1"}')) == 12
    assert _json(capsys, "show", "cases", folder, "--namespace", "tenant-1")[0]["task"] == "of others"
    assert "must be JSON" in _refused(capsys, "show", "cases", folder, "--where", "{")
    assert "unknown operator" in _refused(capsys, "show", "cases", folder, "--where", '{"user": {"$what": 1}}')


def test_show_shows_one_case_whole(folder: str, capsys: pytest.CaptureFixture[str]):
    (case,) = _json(capsys, "show", "cases", folder, "--limit", "1", "--oldest-first")
    printed = _shown(capsys, "show", "case", folder, case["id"])
    assert case["task"].rstrip() in printed  # an older rich leaves out spaces at the end of a line
    assert printed.endswith("Solution:\n  solution 0\n")
    assert '{"user": "u0"}' in printed
    assert _json(capsys, "show", "case", folder, case["id"]) == case
    assert "there is no case 'nobody'" in _refused(capsys, "show", "case", folder, "nobody")
    assert "there is no case" in _refused(capsys, "show", "case", folder, case["id"], "--namespace", "tenant-1")


def test_texts_of_cases_change_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    hostile = "pay \u202ebob\u200b [red]now[/red] :smile: [link=http://x]"
    steps = Trajectory([Step(action="look [bold]", observation="\u202eseen")], answer=":smile:")
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        case_id = memory.add(hostile, steps, metadata={"user\u200b": "\u202eann"})
        memory.recall(hostile, episode_id="e\u202e")
    for arguments in (["show", "cases"], ["show", "case", case_id], ["show", "episodes"]):
        printed = _shown(capsys, *arguments[:2], str(tmp_path / "m"), *arguments[2:])
        assert not {"\u202e", "\u200b", "\x1b"} & set(printed)
        assert "<U+202E>" in printed
    assert "[red]now[/red] :smile: [link=http://x]" in printed


def test_episodes_by_status_and_source(folder: str, capsys: pytest.CaptureFixture[str]):
    assert [one["task"] for one in _json(capsys, "show", "episodes", folder)] == ["proposed", "judged", "held"]
    assert [one["id"] for one in _json(capsys, "show", "episodes", folder, "--oldest-first")][:2] == ["open one", "judged one"]
    assert [one["id"] for one in _json(capsys, "show", "episodes", folder, "--status", "open")] == ["open one"]
    (judged,) = _json(capsys, "show", "episodes", folder, "--source", "human")
    assert (judged["id"], judged["reward"], judged["solution"]) == ("judged one", 1.0, "s")
    printed = _shown(capsys, "show", "episodes", folder, "--status", "settled")
    assert "settled, reward 1 from human" in printed
    assert printed.endswith("2 episodes\n")


def test_namespaces_are_counted(folder: str, capsys: pytest.CaptureFixture[str]):
    assert _json(capsys, "show", "namespaces", folder) == [
        {"namespace": "default", "cases": 26},
        {"namespace": "tenant-1", "cases": 1},
    ]
    assert "tenant-1" in _shown(capsys, "show", "namespaces", folder)


def test_a_mistyped_namespace_is_an_error_that_names_the_others(folder: str, capsys: pytest.CaptureFixture[str]):
    commands = [["show", "cases"], ["show", "case", "x"], ["show", "episodes"], ["show", "stats"], ["show", "report"]]
    commands += [["review", "pending"], ["review", "expired"], ["data", "forget", "--everything", "--yes"]]
    commands += [["bench", "replay", "--policy", "similarity"]]
    for group, command, *more in commands:
        words = [group, command, folder, *more]
        assert "there are 'tenant-1', 'default'" in _refused(capsys, *words, "--namespace", "tenant1"), command


def test_report_and_replay_read_the_same_namespace():
    report = parser().parse_args(["show", "report", "memory"])
    replay = parser().parse_args(["bench", "replay", "memory", "--policy", "similarity"])
    assert report.namespace == replay.namespace == "default"


def test_the_environment_names_the_memory_and_the_namespace(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CASCADE_MEMORY_URL", folder)
    monkeypatch.setenv("CASCADE_MEMORY_NAMESPACE", "tenant-1")
    (case,) = _json(capsys, "show", "cases")
    assert case["task"] == "of others"
    assert _json(capsys, "show", "case", case["id"]) == case
    assert _json(capsys, "show", "stats")["cases"] == 1
    assert _json(capsys, "show", "report")["namespace"] == "tenant-1"
    assert _json(capsys, "show", "report", "--everywhere")["namespace"] is None
    served = parser().parse_args(["serve", "mcp"])
    assert (served.path, served.namespace, served.log_level) == (folder, "tenant-1", "warning")


def test_pending_breaks_no_id_at_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    name = "a-run-of-a-framework/" * 8
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        memory.recall("cool some mug", episode_id=name).reward(1.0, solution="fridge", source="agent")
        (seen,) = memory.review.reported()
    assert f"{name}@{seen.fingerprint}" in _shown(capsys, "review", "pending", str(tmp_path / "m")).splitlines()


def test_export_replaces_no_file_unless_it_must(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "x.jsonl"
    file.write_text("precious")
    assert "name another one, or pass --force" in _refused(capsys, "data", "export", folder, str(file))
    assert file.read_text() == "precious"
    assert _json(capsys, "data", "export", folder, str(file), "--force")["lines"] == len(file.read_text().splitlines())
    assert main(["data", "export", folder, os.devnull]) == 0  # not a file that could be lost


# -- forgetting ------------------------------------------------------------------------------------------------------


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _cases(folder: str) -> int:
    with CascadeMemory(folder, embedder="stored") as memory:
        return len(memory)


@pytest.mark.parametrize("answer", ["no\n", "y\n", "\n", ""])
def test_everything_is_kept_unless_the_answer_is_yes(
    folder: str, answer: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", _Terminal(answer))
    assert main(["data", "forget", folder, "--everything"]) == 2
    said = capsys.readouterr()
    assert "26 cases, 3 episodes, 3 recalls" in said.out
    assert "nothing was forgotten" in said.err
    assert _cases(folder) == 26


def test_everything_is_forgotten_after_a_yes(folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", _Terminal("yes\n"))
    assert "forgotten: 26 cases" in _shown(capsys, "data", "forget", folder, "--everything")
    assert _cases(folder) == 0
    assert _json(capsys, "show", "namespaces", folder)[1] == {"namespace": "tenant-1", "cases": 1}


def test_nobody_can_be_asked_without_a_terminal(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert "pass --yes" in _refused(capsys, "data", "forget", folder, "--everything")
    monkeypatch.setattr("sys.stdin", _Terminal("yes\n"))
    assert "pass --yes" in _refused(capsys, "data", "forget", folder, "--everything", "--json")
    assert _cases(folder) == 26
    assert _json(capsys, "data", "forget", folder, "--everything", "--yes")["cases"] == 26
    assert _cases(folder) == 0


def test_a_filter_is_asked_about_as_everything_is(
    folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    command = ("data", "forget", folder, "--where", '{"user": "u1"}', "--purge")
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert "pass --yes" in _refused(capsys, *command)
    monkeypatch.setattr("sys.stdin", _Terminal("no\n"))
    assert main(list(command)) == 2
    said = capsys.readouterr()
    assert "forget all with this metadata in namespace 'default'" in said.out
    assert "cases, " in said.out
    assert "nothing was forgotten" in said.err
    assert _cases(folder) == 26
    monkeypatch.setattr("sys.stdin", _Terminal("yes\n"))
    assert "no file of the memory holds a byte" in _shown(capsys, *command)
    assert _cases(folder) < 26


def test_a_dry_run_only_counts(folder: str, capsys: pytest.CaptureFixture[str]):
    assert "would be forgotten: 26 cases" in _shown(capsys, "data", "forget", folder, "--everything", "--dry-run")
    assert _json(capsys, "data", "forget", folder, "--everything", "--dry-run", "--yes")["would_forget"]["cases"] == 26
    assert _cases(folder) == 26
    assert "--yes is only for --where" in _refused(capsys, "data", "forget", folder, "--case", "x", "--yes")
