"""The benchmark's runner: rows that say what they are, the same after a kill, and errors that say what to do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rival_names import parameters

from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.bandit.light import LightPolicy
from cascade_memory.cli import main
from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.evaluation.bench import stages
from cascade_memory.evaluation.bench.methods import KNOWN, METHODS, NEED_A_RERANKER
from cascade_memory.evaluation.bench.names import SUITE_NAMES, TUNABLE
from cascade_memory.evaluation.bench.plan import ALONE, SUITES, Run, Suite
from cascade_memory.evaluation.bench.rows import Rows
from cascade_memory.evaluation.bench.runner import run
from cascade_memory.evaluation.bench.stage import Folders, Stage
from cascade_memory.evaluation.bench.stages import lacking
from cascade_memory.evaluation.bench.summary import interval, table
from cascade_memory.evaluation.stream import SimulatedSolver
from cascade_memory.evaluation.synthetic import tickets
from cascade_memory.evaluation.tasks.catalogue import CATALOGUE

TIMES = {"ms_per_task", "seconds"}


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    for seed, file in enumerate(("banking77.jsonl", "rca_huawei_module.jsonl")):
        lines = [json.dumps({"task": task.query, "label": task.solution}) for task in tickets(120, seed)]
        (folder / file).write_text("\n".join(lines))
    return folder


def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


@pytest.mark.slow
def test_a_row_tells_everything(streams, tmp_path):
    (row,) = run([Run("rca", "CASCADE", seed=0)], streams, tmp_path / "rows.jsonl", progress=False)
    assert (row["solver"], row["n"]) == ("simulated", 120)
    assert row["declared"] == {"alone": 0.454, "matched": 0.97, "misled": 0.5}
    assert {len(row[name]) for name in ("success", "shown", "fitting", "covered", "alone")} == {120}
    assert 0 < row["cases"] <= row["success"].count("1")
    assert row["rate"] == row["success"].count("1") / 120
    for shown, fitting, covered in zip(row["shown"], row["fitting"], row["covered"], strict=True):
        assert fitting <= shown
        assert fitting <= covered
    assert set(row["versions"]) == {"python", "cascade-memory", "numpy", "chromadb"}


@pytest.mark.parametrize("method", parameters((one for one in KNOWN if one not in NEED_A_RERANKER), slow=["NeuralLogUCB"]))
def test_every_method_plays_and_plays_the_same_again(method, streams, tmp_path):
    wanted = [Run("banking77", method, seed=1, limit=40)]
    first, second = (run(wanted, streams, tmp_path / name, progress=False) for name in ("first", "second"))
    assert timeless(first) == timeless(second)
    if ">=" not in method:  # a rule that shows what is alike enough may show nothing
        assert ("1" in first[0]["shown"]) is (method != "zero-shot")


def test_rows_of_another_stream_are_refused(tmp_path):
    row = {"task": "alfworld-30", "seed": 0, "limit": None, "solver": "reuse", "method": "similarity", "n": 300, "stream": "a"}
    rows = Rows(tmp_path / "rows.jsonl")
    rows.append(row)
    rows.append({**row, "seed": 1, "n": 264, "stream": "b"})  # another order is another row of tasks
    for other in ({"n": 264}, {"stream": "c"}):
        with pytest.raises(InvalidInput, match=r"rows of another alfworld-30: 300 tasks.*Name another file"):
            rows.append({**row, "method": "CASCADE", **other})
    rows.append({name: value for name, value in {**row, "method": "CASCADE"}.items() if name != "stream"})
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 3


def test_the_names_that_the_command_line_offers_are_those_of_the_suites_and_the_methods():
    assert tuple(SUITES) == SUITE_NAMES
    assert set(TUNABLE) <= set(KNOWN)


def test_tasks_that_are_not_of_the_paper_are_listed_by_themselves(streams, capsys, monkeypatch):
    ours = replace(CATALOGUE["rca"], name="desk", title="Tickets", paper_name="")
    monkeypatch.setitem(CATALOGUE, "desk", ours)
    assert main(["bench", "data", "--data", str(streams)]) == 0
    of_paper, others = capsys.readouterr().out.split("other tasks")
    assert of_paper.startswith("tasks of the CASCADE paper")
    assert " desk " in others
    assert " llb-db " in others
    assert " desk " not in of_paper
    assert " rca " in of_paper
    assert " rca " not in others
    assert main(["bench", "data", "desk", "--data", str(streams)]) == 0
    assert "in paper   no" in capsys.readouterr().out


def test_rows_whose_solver_was_declared_otherwise_are_refused(tmp_path):
    row = {"task": "rca", "seed": 0, "limit": None, "solver": "simulated", "method": "similarity", "n": 300, "misled": None}
    rows = Rows(tmp_path / "rows.jsonl")
    rows.append({**row, "declared": {"alone": 0.454, "matched": 0.97, "stops": [1, 2], "stream": "a"}})
    again = {**row, "method": "CASCADE"}
    for limit in (None, 100):  # the tables of both would stand side by side
        with pytest.raises(InvalidInput, match=r"rows of rca whose solver had alone = 0.454, and now it is 0.5"):
            rows.append({**again, "limit": limit, "declared": {"alone": 0.5, "matched": 0.97}})
    rows.append({**again, "declared": {"alone": 0.454, "matched": 0.97, "stops": (1, 2), "stream": "b"}})
    rows.append({**again, "solver": "mine", "declared": {"alone": 0.5}})
    rows.append({**again, "task": "lfd", "declared": {"alone": 0.5}})
    rows.append({**again, "seed": 1})  # of a version that declared nothing
    assert len(rows.rows) == 5


@pytest.mark.slow
def test_rows_of_another_declared_share_are_not_taken_for_these(streams, tmp_path, capsys, monkeypatch):
    where = ["--data", str(streams), "--out", str(tmp_path / "rows.jsonl"), "--jobs", "1", "--limit", "20", "--json"]
    play = ["bench", "run", "--tasks", "rca", "--seeds", "1", *where, "--methods", "similarity"]
    assert main(play) == main(play) == 0
    before = (tmp_path / "rows.jsonl").read_bytes()
    monkeypatch.setitem(ALONE, "rca", 0.6)
    for methods in ([], ["zero-shot"]):  # whether there is a run left to play or not
        assert main([*play, *methods]) == 2
        assert "rows of rca whose solver had alone = 0.454, and now it is 0.6" in capsys.readouterr().err
    assert (tmp_path / "rows.jsonl").read_bytes() == before


@pytest.mark.slow
def test_memory_pays_where_solutions_recur(streams, tmp_path):
    suite = Suite(tasks=["banking77"], methods=["zero-shot", "random", "CASCADE"], seeds=2)
    rows = run(list(suite.runs()), streams, tmp_path / "rows.jsonl", progress=False)
    rate = {method: sum(row["rate"] for row in rows if row["method"] == method) / 2 for method in suite.methods}
    assert rate["random"] < rate["zero-shot"] < rate["CASCADE"]


@pytest.mark.long
def test_after_a_kill_it_goes_on_and_ends_with_the_same_rows(streams, tmp_path):
    arguments = ["--tasks", "banking77", "rca", "--methods", "zero-shot", "similarity", "CASCADE"]
    arguments += ["--seeds", "2", "--limit", "40", "--jobs", "2", "--data", str(streams)]
    command = [sys.executable, "-m", "cascade_memory", "bench", "run", "--json", *arguments, "--out"]
    whole = json.loads(subprocess.run([*command, str(tmp_path / "whole.jsonl")], capture_output=True, check=True).stdout)
    target, kills = tmp_path / "killed.jsonl", 0

    def written() -> int:
        try:
            return target.read_bytes().count(b"\n")
        except FileNotFoundError:  # the command tries whether the file can be written, and removes it again
            return 0

    for _ in range(2):
        rows = written()
        process = subprocess.Popen([*command, str(target)], stdout=subprocess.PIPE)
        while process.poll() is None and written() < rows + 2:
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


@pytest.mark.parametrize(
    "held",
    [
        "important\n",
        "important",  # without an end of line
        '{"precious": "settings"}',
        '{"precious": "settings"}\n',
        '{"task": "a ticket", "label": "a"}\n{"task": "another", "label": "b"}',  # a stream
        '{"task": "a ticket", "label": "a"}',
        '{"task": "rca", "method": "CASCADE", "seed": 0}\nand a note',
    ],
)
def test_what_is_no_file_of_rows_is_left_alone(held, streams, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(held)
    with pytest.raises(InvalidInput, match=r"notes.txt holds something other"):
        run([Run("rca", "zero-shot", seed=0)], streams, path, progress=False)
    assert path.read_text() == held


def test_a_row_that_was_cut_off_stays_until_another_takes_its_place(streams, tmp_path):
    path = tmp_path / "rows.jsonl"
    first, second = (Run("rca", "zero-shot", seed, limit=20) for seed in (0, 1))
    run([first], streams, path, progress=False)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:-5])
    assert len(Rows(path).rows) == 1
    assert path.read_bytes() == whole + whole[:-5]  # whoever only reads changes nothing
    assert len(run([first, second, second], streams, path, progress=False)) == 2
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [0, 1]


def test_two_runs_do_not_write_to_one_file(streams, tmp_path):
    path = tmp_path / "rows.jsonl"
    wanted = [Run("rca", "zero-shot", seed=0, limit=20)]
    other = OwnerLock(tmp_path / "rows.work" / "lock")
    (tmp_path / "rows.work").mkdir()
    assert other.try_acquire()
    with pytest.raises(InvalidInput, match="another benchmark is writing"):
        run(wanted, streams, path, progress=False)
    other.release()
    assert len(run(wanted, streams, path, progress=False)) == 1


@pytest.mark.parametrize("out", [".", "taken/rows.jsonl"])
def test_where_no_rows_can_be_kept_it_is_said(out, streams, tmp_path, capsys):
    (tmp_path / "taken").write_text("a file, not a folder")
    wanted = ["--tasks", "rca", "--methods", "zero-shot", "--seeds", "1", "--jobs", "1", "--data", str(streams)]
    assert main(["bench", "run", *wanted, "--out", str(tmp_path / out)]) == 2
    assert "name another file" in capsys.readouterr().err.lower()


def test_the_table_pairs_seeds_and_waits_for_both(streams):
    rows = [
        {"task": "rca", "method": method, "seed": seed, "rate": rate}
        for method, rates in {"similarity": (0.5, 0.6), "CASCADE": (0.6, 0.8)}.items()
        for seed, rate in enumerate(rates)
    ]
    assert table(rows) == [["similarity", "55.0", ""], ["CASCADE", "70.0", "+15.0 ± 63.5"]]
    assert table(rows[:3])[1][2] == "+10.0"  # one seed, no interval
    assert table(rows[2:3])[0][2] == ""  # nothing to compare with
    assert interval([1.0])[0] == 1.0


def test_suites_are_of_known_things():
    for suite in SUITES.values():
        assert set(suite.methods) <= set(KNOWN)
    assert set(SUITES["local"].methods) == set(METHODS)


@pytest.mark.long
def test_commands(streams, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("CASCADE_DATA", raising=False)
    assert main(["bench", "data"]) == 0
    assert "bundled" in capsys.readouterr().out, "without a folder, what comes with the package is listed"
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


@pytest.mark.slow
def test_streams_say_what_they_lack(streams, tmp_path, monkeypatch, capsys):
    assert lacking("banking77", streams) is None
    assert lacking("spider-map", streams) == f"no data for spider in {streams}: cascade-memory bench data says where to get it"
    monkeypatch.setattr(stages, "find_spec", lambda name: None)
    assert 'pip install "cascade-memory[bench]"' in (lacking("scienceworld", streams) or "")
    monkeypatch.setattr(stages, "find_spec", lambda name: name)
    monkeypatch.setattr(stages.shutil, "which", lambda name: None)
    assert "needs Java" in (lacking("scienceworld", streams) or "")
    where = ["--data", str(streams), "--out", str(tmp_path / "rows.jsonl"), "--jobs", "1", "--seeds", "1", "--limit", "20"]
    assert main(["bench", "run", "--suite", "local", "--tasks", "rca", "scienceworld", "--methods", "similarity", *where]) == 0
    assert "not played: scienceworld needs Java" in capsys.readouterr().out


def test_a_suite_names_streams_and_a_run_says_who_solves_them():
    suite = Suite(tasks=["rca", "spider-map", "scienceworld"], methods=["CASCADE"], seeds=1)
    assert [(one.task, one.solver) for one in suite.runs()] == [
        ("rca", "simulated"),
        ("spider", "reuse-map"),
        ("scienceworld", "reuse"),
    ]


class Breaks(SimulatedSolver):
    """A solver that fails on one run."""

    def solve(self, task, shown):
        raise KeyError("a judge with a mistake")


def broken_in_the_third(run: Run, folders: Folders) -> Stage:
    stage = stages.stage_for(run, folders)
    if run.seed != 2:
        return stage
    return replace(stage, solver=Breaks(list(stage.solutions or ()), zero_shot=0.5, misled=0.5, seed=0))


@pytest.mark.long
def test_a_run_that_breaks_ends_the_benchmark_and_costs_no_row(streams, tmp_path):
    runs = [Run("rca", "zero-shot", seed, 20) for seed in range(200)]
    with pytest.raises(KeyError, match="a judge with a mistake"):
        run(runs, streams, tmp_path / "rows.jsonl", staged=broken_in_the_third, jobs=2, progress=False)
    kept = Rows(tmp_path / "rows.jsonl").rows
    assert 2 <= len(kept) < 199
    assert 2 not in {row["seed"] for row in kept}


def test_a_ranker_that_fails_is_not_measured_as_similarity(streams, tmp_path, monkeypatch):
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a policy with a mistake")

    monkeypatch.setattr(LightPolicy, "select", broken)
    with pytest.raises(CascadeError, match=r"'CASCADE' was not measured.*rank \d+ times.*a policy with a mistake"):
        run([Run("rca", "CASCADE", 0, 20)], streams, tmp_path / "rows.jsonl", jobs=1, progress=False)
    assert Rows(tmp_path / "rows.jsonl").rows == []


@pytest.mark.parametrize("wrong", [["--limit", "-5"], ["--limit", "0"], ["--seeds", "0"], ["--jobs", "0"]])
def test_numbers_are_positive(wrong, streams, capsys):
    with pytest.raises(SystemExit):
        main(["bench", "run", "--data", str(streams), *wrong])
    assert "must be 1 or more" in capsys.readouterr().err


def test_rows_of_another_embedder_are_not_taken_for_these(streams, tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    (row,) = run([Run("rca", "similarity", 0, 20)], streams, rows, progress=False)
    rows.write_text(json.dumps({**row, "embedder": "another"}) + "\n")
    where = ["--data", str(streams), "--out", str(rows), "--jobs", "1", "--limit", "20"]
    assert main(["bench", "run", "--tasks", "rca", *where]) == 2
    assert "rows for the embedder 'another'" in capsys.readouterr().err
