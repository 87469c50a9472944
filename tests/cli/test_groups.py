"""The commands stand in a few groups, whose help texts fit on a screen and are there at once."""

from __future__ import annotations

import subprocess
import sys

import pytest
from command_line import every_command

from cascade_memory.cli import main

GROUPS = sorted({words[0] for words in every_command()})
HEAVY = ("numpy", "rich", "chromadb", "langchain", "langgraph", "llama_index", "mcp", "torch", "transformers", "matplotlib")
HELPS = """
import sys
from cascade_memory.cli import main
for words in sys.argv[1:]:
    try:
        main(words.split())
    except SystemExit as ended:
        assert ended.code == (0 if words.endswith("--help") else 2), words
print("\\n", *(name.split(".")[0] for name in sys.modules))
"""


def _helped(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_help_fits_on_a_screen_and_lists_at_most_eight_groups(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    lines = _helped(capsys).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    listed = [line.split()[0] for line in lines if line.startswith("    ")]
    assert sorted(listed) == GROUPS
    assert len(listed) <= 8


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_of_a_group_lists_its_commands(
    group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    lines = _helped(capsys, group).splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("    ") and line[4] != " "]
    assert listed == [words[1] for words in every_command() if words[0] == group]
    assert len(listed) >= 2


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_every_command_is_described(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    usage, about, *_ = _helped(capsys, *words).split("\n\n")
    assert usage.startswith(f"usage: cascade-memory {' '.join(words)} ")
    assert about[0].isupper()
    assert about.endswith(".")


@pytest.mark.parametrize("words", [(), *((group,) for group in GROUPS)], ids=" ".join)
def test_where_a_command_is_missing_the_commands_are_listed(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    listed = _helped(capsys, *words)
    with pytest.raises(SystemExit) as ended:
        main([*words])
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"{listed}\n{' '.join(('cascade-memory', *words))}: error: a command is missing\n"


@pytest.mark.parametrize("words", [["doctor", "memory"], ["data", "list", "memory"], ["show", "--json"], ["memory"]])
def test_an_unknown_command_is_refused_with_the_usage(words: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith("usage: cascade-memory ")
    assert "error: " in shown


def test_a_mistake_is_told_with_the_whole_name_of_the_command(capsys: pytest.CaptureFixture[str]):
    assert main(["show", "stats", "/nobody/here"]) == 2
    assert capsys.readouterr().err.startswith("cascade-memory show stats: there is no memory")
    assert main(["bench", "demo", "--tasks", "3"]) == 2
    assert capsys.readouterr().err.startswith("cascade-memory bench demo: --tasks")


def test_no_help_and_no_mistake_in_a_command_waits_for_what_is_slow_to_load():
    asked = ["--help", *(" ".join((*words, "--help")) for words in every_command()), "show", "data doctor --no-such-option"]
    done = subprocess.run([sys.executable, "-c", HELPS, *asked], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "cascade_memory" in loaded
    assert loaded & set(HEAVY) == set()
