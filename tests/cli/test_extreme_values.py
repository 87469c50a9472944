"""Every argument of every command with every extreme text: refused with a short sentence, or stored so that all else goes on.

Which of the calls are made is drawn by chance. With CASCADE_TESTS=matrix all are, in some minutes.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import arguments_by_command, every_command
from extreme_calls import drawn
from whole_memory import assert_whole

from cascade_memory import CascadeMemory, restore
from cascade_memory.cli import main
from cascade_memory.cli.arguments import refusal
from cascade_memory.errors import InvalidInput

pytestmark = pytest.mark.fuzz

_LONGEST = 4_000  # characters of a refusal, with the usage of its command

# They play for a long time, ask platforms, or serve until they are stopped.
_LEFT_OUT = {"bench", "collect", "serve"}

_NUMBERS = ("0", "-1", "1", "nan", "inf", "-inf", "1e999", "1_000", "٣", "0x10", "10" * 200, f"{2**63}", f"{2**63 - 1}")
_JSON = {
    "deep": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "deep list": "[" * 100_000 + "]" * 100_000,
    "wide": json.dumps({f"k{i}": i for i in range(3_000)}),
    "empty $in": '{"$and": [{"a": {"$in": []}}]}',
    **{text: text for text in ('{"a": NaN}', "[1]", '{"a":1,"a":2}', r'{"a": "\ud800"}', '{"a": 1' + "0" * 5_000 + "}")},
}
EXTREME = {
    **{"empty": "", "space": " ", "zero": "a\0b", "surrogate": "\ud800", "not UTF-8": "\udcff", "hidden": "a\u202eb\u200b"},
    **{"terminal": "\x1b]0;x\x07", "lines": "a\nb\r", "1 MB": "x" * 1_000_001, "257": "é" * 257, "10**5000": "1" + "0" * 5_000},
    **{text: text for text in ("-", "--", "--purge", "../../../../etc/passwd", "/dev/zero", "/dev/full", "~nobody-here/x")},
    **{text: text for text in ("@", "x@y@z", "http://[::1", "http://127.0.0.1:1", "postgresql://[", "mysql://x")},
    **{text: text for text in ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "999999w", "9" * 400 + "d")},
    **{number: number for number in _NUMBERS},
    **_JSON,
}


def _is_flag(one: argparse.Action) -> bool:
    return one.nargs == 0


_BY_COMMAND = {
    words: arguments_by_command()[words]
    for words in every_command()
    if words[0] not in _LEFT_OUT or words == ("bench", "plan")  # which only calculates
}
CALLS = [
    (path, one.dest, label)
    for path, options in _BY_COMMAND.items()
    for one in options
    if not _is_flag(one)
    for label in EXTREME
]


def _command(path: tuple[str, ...], dest: str, value: str, given: Callable[[str], str]) -> list[str]:
    """Return a command with one extreme argument; what else it needs is honest."""
    words, positional = list(path), ["--"]
    for one in _BY_COMMAND[path]:
        text = value if one.dest == dest else given(one.dest)
        if _is_flag(one):
            words += ["--yes"] if one.dest == "yes" else []
        elif not (one.required or one.dest in ("path", dest)):
            continue
        elif not one.option_strings:
            positional.append(text)
        else:
            words += [f"{one.option_strings[0]}={text}"] if one.nargs is None else [one.option_strings[0], text]
    return words + positional * (len(positional) > 1)


def _wrong(words: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """Run a command; return what is wrong with how it ended, if anything."""
    began = time.process_time()
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    except Exception as error:
        return f"raised {type(error).__name__}: {str(error)[:200]}"
    took = time.process_time() - began
    out, said = capsys.readouterr()
    if code not in (0, 1, 2) or (code and not said and words[1] != "doctor"):
        return f"exit {code} without a word"
    if len(said) > _LONGEST:
        return f"a refusal of {len(said):,} characters"
    if any((ord(sign) < 32 and sign not in "\n\t") or sign in "\u202e\u200b" for sign in out + said):
        return f"control characters in {(out + said)[:200]!r}"
    return f"took {took:.0f} s" if took > 10 else None


@pytest.mark.slow
def test_a_command_refuses_an_extreme_argument_or_does_its_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert len(CALLS) > 5_000
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    folder = str(tmp_path / "memory")
    with CascadeMemory(folder, embedder="hashing", learn="inline") as memory:
        case = memory.add("cool some egg", "fridge", metadata={"user": "ann"})
        episode = str(memory.recall("heat some egg").episode_id)
        memory.reward(episode, 1.0, solution="microwave", source="agent")
        memory.cases.hide(case)
        entry = next(iter(memory.review.audit())).id
    honest = {"path": folder, "source": folder, "id": case, "case": case, "episode": episode, "entry": entry, "since": "7d"}
    found: dict[str, str] = {}
    for number, (path, dest, label) in enumerate(drawn(CALLS, 7)):
        new = {name: str(tmp_path / f"{name}-{number}") for name in ("target", "file", "backup")}
        words = _command(
            path, dest, EXTREME[label], lambda name, new=new: {**honest, **new, "embedder": "hashing"}.get(name, "x")
        )
        if why := _wrong(words, capsys):
            found[f"{' '.join(path)} {dest}={label}"] = why
    assert found == {}
    with CascadeMemory(folder, learn="inline") as memory:
        memory.add("cool some mug", "fridge")  # one of the calls may have deleted everything
        assert_whole(memory, tmp_path)


def test_a_path_that_names_no_file_is_refused_everywhere(tmp_path: Path, ram: CascadeMemory):
    ram.add("cool some egg", "fridge")
    ram.data.backup(tmp_path / "backup")
    for name in ("a\0b", "\ud800", "\udcff", "x" * 300, "~nobody-here/x"):
        for use in (
            lambda name=name: CascadeMemory(name),
            lambda name=name: ram.data.backup(name),
            lambda name=name: ram.data.export(name),
            lambda name=name: ram.data.import_(name),
            lambda name=name: restore(name, tmp_path / "new"),
            lambda name=name: restore(tmp_path / "backup", name),
        ):
            with pytest.raises(InvalidInput, match=r"names no file|must be UTF-8"):
                use()


def test_a_file_without_line_ends_is_not_read_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["data", "import", str(tmp_path / "memory"), "/dev/zero"]) == 2
    assert "line 1 is not JSON" in capsys.readouterr().err


def test_what_a_refusal_quotes_begins_no_line():
    shown = refusal("there is no namespace " + "x" * 200 + "\ninvented: all is well" * 400)
    assert "characters cut" in shown
    assert [line for line in shown.splitlines()[1:] if not line.startswith("  ")] == []
