"""bench tune: the learning rate without exploration, then alpha; rows that resume, a cost that is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cascade_memory.cli import main
from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.methods import open_memory
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.rows import Rows
from cascade_memory.evaluation.bench.runner import run
from cascade_memory.evaluation.bench.tuning import GRIDS, canonical, rate, tune
from cascade_memory.evaluation.synthetic import tickets


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    lines = [json.dumps({"task": task.query, "label": task.solution}) for task in tickets(60, 0)]
    (folder / "banking77.jsonl").write_text("\n".join(lines))
    return folder


@pytest.mark.slow
def test_the_learning_rate_comes_first_then_alpha(streams, tmp_path):
    played: list[list[Run]] = []

    def play_all(runs):
        played.append(list(runs))
        return run(runs, streams, tmp_path / "rows.jsonl", progress=False)

    grids = {"learning_rate": (1e-6, 0.5), "alpha": (0.1, 1.0)}
    found = tune(Run("banking77", "Neural-LinLogUCB", 0, 50), 2, play_all, grids)
    first, second = ([json.loads(one.options) for one in stage] for stage in played)
    assert {one["alpha"] for one in first} == {0.0}
    assert [one["learning_rate"] for one in first] == [1e-6, 1e-6, 0.5, 0.5]
    best = max(found.trials[:2], key=rate)[0]["learning_rate"]
    assert {one["learning_rate"] for one in second} == {best}
    assert rate(found.winner) == max(rate(trial) for trial in found.trials[2:])
    assert found.episodes == 8 * 50
    assert found.seconds > 0


@pytest.mark.slow
def test_parameters_make_a_difference_and_are_part_of_what_a_row_is(streams, tmp_path):
    wanted = [Run("banking77", "Neural-LinLogUCB", 0, options=canonical({"learning_rate": 0.1, "alpha": a})) for a in (0, 50)]
    calm, wild = run(wanted, streams, tmp_path / "rows.jsonl", progress=False)
    assert calm["options"] != wild["options"]
    assert calm["success"] != wild["success"]
    assert run([Run("banking77", "CASCADE", 0)], streams, tmp_path / "rows.jsonl", progress=False)[0]["options"] == ""
    assert len(Rows(tmp_path / "rows.jsonl").rows) == 3


def test_a_row_from_before_there_were_parameters_is_still_its_run(tmp_path):
    path = tmp_path / "old.jsonl"
    path.write_text(json.dumps({"task": "rca", "method": "CASCADE", "seed": 0, "limit": None, "solver": "simulated"}) + "\n")
    assert Rows(path).missing([Run("rca", "CASCADE", 0)]) == []
    assert len(Rows(path).missing([Run("rca", "CASCADE", 0, options=canonical({"alpha": 0.1}))])) == 1


def test_what_cannot_be_tuned_says_so():
    with pytest.raises(InvalidInput, match="'similarity' has nothing to tune"):
        tune(Run("rca", "similarity", 0), 1, lambda _: [])
    with pytest.raises(InvalidInput, match="'CASCADE' takes alpha and k, not learning_rate"):
        open_memory("CASCADE", HashingEmbedder(), canonical({"learning_rate": 0.1}))
    assert GRIDS["alpha"] == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@pytest.mark.long
def test_commands(streams, tmp_path, capsys):
    out = tmp_path / "tuning.jsonl"
    where = ["--task", "banking77", "--data", str(streams), "--limit", "30", "--jobs", "1", "--out", str(out)]
    command = ["bench", "tune", *where, "--learning-rates", "0.001", "0.1", "--alphas", "0.1", "0.5"]
    assert main([*command, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["runs"], first["episodes"], first["simulated"]) == (4, 120, True)
    assert set(first["winner"]) == {"learning_rate", "alpha"}
    before = out.read_bytes()
    assert main(command) == 0
    again = capsys.readouterr().out
    assert out.read_bytes() == before, "what was played is not played again"
    assert "SIMULATED" in again
    assert f"4 runs, 120 episodes, {first['seconds']} s" in again
    assert main(["bench", "tune", *where, "--method", "CASCADE", "--alphas", "0.1", "0.5"]) == 0
    assert "learning_rate" not in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    assert main(["bench", "report", str(out), "--tuning", str(out), "--out", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "index.html").read_text()
    assert "Tuning: SIMULATED solver" in page
    assert "alpha 0.5" in page
    assert main(["bench", "tune", *where[2:], "--task", "nothing"]) == 2
    assert "'nothing' has no declared simulated solver to tune with; there are banking77" in capsys.readouterr().err
