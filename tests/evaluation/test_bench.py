"""The benchmark's runner: rows that say what they are, the same after a kill, and errors that say what to do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.methods import METHODS
from cascade_memory.evaluation.bench.plan import SUITES, Run, Suite
from cascade_memory.evaluation.bench.rows import Rows
from cascade_memory.evaluation.bench.runner import run
from cascade_memory.evaluation.bench.summary import interval, table
from cascade_memory.evaluation.synthetic import tickets

TIMES = {"ms_per_task"}


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    for seed, file in enumerate(("banking77.jsonl", "rca_huawei_module.jsonl")):
        lines = [json.dumps({"task": task.query, "label": task.solution}) for task in tickets(120, seed)]
        (folder / file).write_text("\n".join(lines))
    return folder


def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def test_a_row_tells_everything(streams, tmp_path):
    (row,) = run([Run("rca", "CASCADE", seed=0)], streams, tmp_path / "rows.jsonl", progress=False)
    assert (row["solver"], row["n"], row["alone"], row["matched"], row["misled"]) == ("simulated", 120, 0.454, 0.97, 0.5)
    assert {len(row[name]) for name in ("success", "shown", "fitting", "covered")} == {120}
    assert row["rate"] == row["success"].count("1") / 120
    for shown, fitting, covered in zip(row["shown"], row["fitting"], row["covered"], strict=True):
        assert fitting <= shown
        assert fitting <= covered
    assert set(row["versions"]) == {"python", "cascade-memory", "numpy", "chromadb"}


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_plays_and_plays_the_same_again(method, streams, tmp_path):
    wanted = [Run("banking77", method, seed=1, limit=40)]
    first, second = (run(wanted, streams, tmp_path / name, progress=False) for name in ("first", "second"))
    assert timeless(first) == timeless(second)
    assert ("1" in first[0]["shown"]) is (method != "zero-shot")


def test_memory_pays_where_solutions_recur(streams, tmp_path):
    suite = Suite(tasks=["banking77"], methods=["zero-shot", "random", "CASCADE"], seeds=2)
    rows = run(list(suite.runs()), streams, tmp_path / "rows.jsonl", progress=False)
    rate = {method: sum(row["rate"] for row in rows if row["method"] == method) / 2 for method in suite.methods}
    assert rate["random"] < rate["zero-shot"] < rate["CASCADE"]


def test_after_a_kill_it_goes_on_and_ends_with_the_same_rows(streams, tmp_path):
    arguments = ["--tasks", "banking77", "rca", "--methods", "zero-shot", "NP-CBR", "CASCADE"]
    arguments += ["--seeds", "2", "--limit", "100", "--jobs", "2", "--data", str(streams)]
    command = [sys.executable, "-m", "cascade_memory", "bench", "run", "--json", *arguments, "--out"]
    whole = json.loads(subprocess.run([*command, str(tmp_path / "whole.jsonl")], capture_output=True, check=True).stdout)
    target, kills = tmp_path / "killed.jsonl", 0
    for _ in range(2):
        rows = target.read_bytes().count(b"\n") if target.exists() else 0
        process = subprocess.Popen([*command, str(target)], stdout=subprocess.PIPE)
        while process.poll() is None and (target.read_bytes().count(b"\n") if target.exists() else 0) < rows + 2:
            time.sleep(0.01)
        kills += process.poll() is None
        process.kill()
        process.communicate()
    assert kills >= 1
    with target.open("ab") as file:
        file.write(b'{"task": "banking77", "meth')  # killed while it wrote
    resumed = json.loads(subprocess.run([*command, str(target)], capture_output=True, check=True).stdout)
    assert timeless(resumed) == timeless(whole)
    assert len(whole) == 12
    assert len(target.read_text().splitlines()) == 12


def test_what_is_no_file_of_rows_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("important\n")
    with pytest.raises(InvalidInput, match=r"notes.txt holds something else"):
        Rows(path)
    assert path.read_text() == "important\n"


def test_the_table_pairs_seeds_and_waits_for_both(streams):
    rows = [
        {"task": "rca", "method": method, "seed": seed, "rate": rate}
        for method, rates in {"NP-CBR": (0.5, 0.6), "CASCADE": (0.6, 0.8)}.items()
        for seed, rate in enumerate(rates)
    ]
    assert table(rows) == [["NP-CBR", "55.0", ""], ["CASCADE", "70.0", "+15.0 ± 63.5"]]
    assert table(rows[:3])[1][2].startswith("+10.0 ± nan")
    assert interval([1.0])[0] == 1.0


def test_suites_are_of_known_things():
    for suite in SUITES.values():
        assert set(suite.methods) <= set(METHODS)


def test_commands(streams, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("CASCADE_DATA", raising=False)
    assert main(["bench", "data"]) == 2
    assert "--data DIR" in capsys.readouterr().err
    assert main(["bench", "data", "--data", str(streams)]) == 0
    assert "banking77" in capsys.readouterr().out
    assert main(["bench", "data", "rca", "--data", str(streams), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["there"] is True
    assert main(["bench", "data", "nothing", "--data", str(streams)]) == 2
    where = ["--data", str(streams), "--out", str(tmp_path / "rows.jsonl"), "--jobs", "1"]
    assert main(["bench", "run", "--tasks", "rca", "--seeds", "1", "--limit", "30", *where]) == 0
    assert "SIMULATED" in capsys.readouterr().out
    assert main(["bench", "run", "--tasks", "sentifin", *where]) == 2
    assert "no data for sentifin" in capsys.readouterr().err
    assert main(["bench", "run", "--methods", "magic", *where]) == 2
    assert "no 'magic'" in capsys.readouterr().err
