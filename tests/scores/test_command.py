"""``cascade-memory collect``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from scored import logs, opened, recalled, record, score

from cascade_memory.capabilities.scores import platforms
from cascade_memory.cli import main
from cascade_memory.errors import PlatformFailed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with opened(tmp_path / "memory") as memory:
        for number in range(3):
            recalled(memory, number)
    return tmp_path / "memory"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "evaluations.jsonl"
    file.write_text(json.dumps(logs(record(0), record(1), record(9))) + "\n")
    return file


class Somewhere:
    """A platform that remembers what it was asked, and fails if it is told to."""

    def __init__(self) -> None:
        self.scores, self.asked, self.fails = [score(1, judge="human", platform="somewhere")], list[Any](), list[Exception]()

    def function(self, name: str) -> Any:
        return getattr(self, name)

    def collect(self, *, since: float) -> Any:
        self.asked.append(since)
        if self.fails:
            raise self.fails.pop()
        yield from self.scores

    def check(self, known: Any) -> Any:
        self.asked.append([one.id for one in known])
        yield from ()


@pytest.fixture
def somewhere(monkeypatch: pytest.MonkeyPatch) -> Somewhere:
    platform: Any = Somewhere()
    platform.about, platform.settings, platform.is_file = "read somewhere", ("SOMEWHERE_KEY",), False
    monkeypatch.setattr("cascade_memory.capabilities.scores.commands.PLATFORMS", {"somewhere": platform})
    return platform


def test_a_file_is_collected_once(folder: Path, file: Path, capsys: pytest.CaptureFixture[str]):
    words = ["collect", "otlp", str(file), "--path", str(folder)]
    assert main([*words, "--dry-run"]) == 0
    assert capsys.readouterr().out == (
        "of 3 scores 2 find an episode: 2 judges\nnot used: 1 whose trace has no episode here\na dry run: nothing was stored\n"
    )
    assert main([*words, "--weight", "Relevance=1", "--weight", "Tone=0.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rewarded"] == 2
    assert main(words) == 0
    assert capsys.readouterr().out.endswith("nothing was to be changed\n")
    with opened(folder) as memory:
        assert [value for value, _ in memory.episodes.rewards()] == [0.5, 0.5]


def test_labels_and_names_are_mapped(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    said = [{"key": f"gen_ai.evaluation.{key}", "value": {"stringValue": "so-so"}} for key in ("name", "score.label")]
    (tmp_path / "file").write_text(json.dumps(logs(record(1, attributes=said))))
    words = ["collect", "otlp", str(tmp_path / "file"), "--path", str(folder)]
    assert main(words) == 0
    assert "1 without a number from 0 to 1 (so-so: 1)" in capsys.readouterr().out
    assert main([*words, "--weight", "other=1"]) == 0
    assert "1 not mapped (so-so: 1)" in capsys.readouterr().out
    assert main([*words, "--label", "so so=0.5"]) == 0
    assert "1 episode rewarded" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["no-such-file"], "cannot be read: No such file"),
        (["file", "--label", "x=2"], "must be a number from 0 to 1"),
        (["file", "--namespace", "nobody"], "there is no namespace 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_refused(
    folder: Path,
    tmp_path: Path,
    words: list[str],
    why: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(["collect", "otlp", *words, "--path", str(folder)]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--weight", "x"], ["--weight", "x=y"], ["--every", "0"], ["--every", "nan"], ["--every", "x"]]
)
def test_an_option_that_means_nothing_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["collect", "otlp", "file", "--path", "memory", *words])
    assert ended.value.code == 2
    assert "must be a" in capsys.readouterr().err


def test_a_platform_is_asked_for_what_is_new_and_whether_what_is_known_still_is(
    folder: Path, somewhere: Somewhere, capsys: Any
):
    somewhere.scores = [score(1, judge="human", platform="somewhere", at=time.time())]
    words = ["collect", "somewhere", "--path", str(folder)]
    for _ in range(2):
        assert main(words) == 0
    assert main([*words, "--since", "1970-01-02T00:00:00+00:00"]) == 0
    newest = somewhere.scores[0].at
    with opened(folder) as memory:
        oldest = min(one.opened_at for one in memory.episodes.all())
    assert somewhere.asked == [oldest, newest, ["1"], 86_400.0, ["1"]]
    with pytest.raises(SystemExit):
        main(["collect", "somewhere", "--help"])
    assert "SOMEWHERE_KEY" in capsys.readouterr().out


def test_a_score_from_the_future_stops_no_collector(folder: Path, somewhere: Somewhere, capsys: pytest.CaptureFixture[str]):
    now = time.time()
    late = score(2, id="2", platform="somewhere", at=now + 40_000)  # a clock that is wrong by hours
    somewhere.scores = [score(1, platform="somewhere", at=now - 1_000), late, score(0, id="3", platform="somewhere", at=9e10)]
    words = ["collect", "somewhere", "--path", str(folder)]
    assert main(words) == 0
    assert "1 refused" in capsys.readouterr().out
    somewhere.scores = []
    assert main(words) == 0
    assert somewhere.asked[1] == pytest.approx(now - 1_000)


def test_an_empty_memory_begins_now(tmp_path: Path, somewhere: Somewhere):
    opened(tmp_path / "memory").close()
    somewhere.scores, began = [], time.time()
    assert main(["collect", "somewhere", "--path", str(tmp_path / "memory")]) == 0
    assert began <= somewhere.asked[0] <= time.time()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"at": time.time() + 200_000}, "must not be more than a day from now"),
        ({"span_id": "ghp_" + "a1" * 18}, "span_id must be 32 hexadecimal digits, or 16 for a span, or a UUID"),
        ({"trace_id": None, "span_id": "x"}, "span_id must be 32"),
        ({"trace_id": "ghp_" + "a1" * 18}, "trace_id must be 32"),
    ],
)
def test_what_cannot_be_a_moment_or_an_id_is_refused(folder: Path, fields: dict[str, Any], why: str):
    with opened(folder) as memory:
        memory.scores.collect([score(1)])
        found = memory.scores.collect([score(1, at=fields.pop("at", 1.71e9), **fields)])
    assert found.refused == 1
    assert why in found.why[0]
    assert "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1" not in found.why[0] or "trace_id" not in fields


def test_a_failure_is_one_line_and_is_tried_again_until_ctrl_c(
    folder: Path, somewhere: Somewhere, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    somewhere.fails = [ConnectionError("it is away\nkey sk-proj-" + "a1B2c3D4e5" * 5), KeyError()]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        if seconds == 60.0:
            slept.append(seconds)
        if seconds == 60.0 and len(slept) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    assert main(["collect", "somewhere", "--path", str(folder), "--every", "60"]) == 0
    shown = capsys.readouterr()
    assert slept == [60.0] * 4
    assert shown.out.count("1 episode rewarded") == 1
    assert shown.out.count("nothing was to be changed") == 1
    first, away, stopped = shown.err.splitlines()
    assert first == "cascade-memory collect somewhere: KeyError; tried again in 60 seconds"
    assert away.startswith("cascade-memory collect somewhere: it is away")
    assert "sk-proj" not in away
    assert stopped == "cascade-memory collect somewhere: stopped"


def test_a_check_that_fails_each_time_is_made_once_an_hour(
    folder: Path, somewhere: Somewhere, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def check(known: Any) -> Any:
        somewhere.asked.append(len(known))
        raise PlatformFailed("nothing was withdrawn")
        yield

    def sleep(seconds: float) -> None:
        if seconds == 1_800.0:
            slept.append(seconds)
        if seconds == 1_800.0 and len(slept) == 4:
            raise KeyboardInterrupt

    slept: list[float] = []
    began = time.monotonic()
    somewhere.scores = [score(1, judge="human", platform="somewhere", at=time.time())]
    somewhere.check = check  # pyright: ignore[reportAttributeAccessIssue]
    assert main(["collect", "somewhere", "--path", str(folder)]) == 0
    somewhere.asked.clear()
    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: began + sum(slept))
    assert main(["collect", "somewhere", "--path", str(folder), "--every", "1800"]) == 0
    assert [one for one in somewhere.asked if one == 1] == [1, 1]  # at the start and after an hour
    assert capsys.readouterr().err.count("nothing was withdrawn") == 2


@pytest.mark.slow
def test_it_follows_a_file_and_ends_with_ctrl_c(folder: Path, file: Path):
    command = [sys.executable, "-m", "cascade_memory", "collect", "otlp", str(file), "--path", str(folder), "--every", "1"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts the tests in the background lets them ignore interrupts, and each process that they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:
        assert running.stdout is not None
        is_over = False
        for line in running.stdout:
            if "2 episodes rewarded" in line:
                with file.open("a") as lines:
                    lines.write(json.dumps(logs(record(2))) + "\n")
            is_over |= "1 episode rewarded" in line
            if is_over:  # again with each further line: Python drops an interrupt that comes inside a finalizer
                os.kill(running.pid, signal.SIGINT)
        assert running.stderr is not None
        assert running.stderr.read() == "cascade-memory collect otlp: stopped\n"
    assert running.returncode == 0


def test_every_platform_has_its_module():
    for name, one in platforms.PLATFORMS.items():
        assert one.module.endswith(f".{name}")
        assert one.is_file is (name == "otlp")
