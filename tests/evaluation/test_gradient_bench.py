"""A language model that is trained in the benchmark: its rows, a crash in the middle of a run, and what it learns."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_language_models import STREAM, make_language_model, write_signs

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.gradient import REINFORCE, LocalModel, Sampling, Training

FREE = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 1}
QUICKLY = {"learning_rate": 0.02, "batch": 8}
ASIDE = {"ms_per_task", "seconds", "peak_memory_gib", "versions", "machine", "revision", "request_log"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_language_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def signs(tmp_path: Path) -> Path:
    return write_signs(tmp_path, 40)


def rows_of(model: Path, data: Path, out: str = "rows.jsonl", **options: Any) -> list[dict[str, Any]]:
    training = options.pop("training", QUICKLY)
    solver = LocalModel(folder=str(model), sampling=Sampling(**FREE), training=Training(**training))
    wanted: dict[str, Any] = {"methods": ["zero-shot", REINFORCE], "seeds": 1, **options}
    return measure(STREAM, data=data, solver=solver, out=data / out, progress=False, **wanted)


def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in ASIDE} for row in rows]


@pytest.mark.slow
def test_a_row_tells_the_model_and_all_settings(model, signs):
    untrained, trained = rows_of(model, signs)
    assert trained["solver"] == untrained["solver"] == "tiny, in this process"
    declared = trained["declared"]
    assert declared == untrained["declared"]
    assert (declared["rank"], declared["scaling"], declared["kl"], declared["kl_form"]) == (8, 16.0, 0.1, "published")
    assert (declared["temperature"], declared["learning_rate"], declared["dtype"]) == (1.0, 0.02, "float32")
    assert declared["weights"].startswith("llama:")
    assert (trained["n"], trained["requests"], trained["completion_tokens"], trained["optimiser_steps"]) == (40, 40, 40, 5)
    assert trained["prompt_tokens"] == untrained["prompt_tokens"]
    assert trained["device"] == untrained["device"] == "cpu"
    assert trained["ms_per_task"] > 0
    assert trained["peak_memory_gib"] is None or trained["peak_memory_gib"] >= 0
    assert trained["shown"] == "0" * 40
    assert abs(trained["log_ratio"]) > 0.01


@pytest.mark.slow
def test_before_the_first_step_it_is_the_untrained_model(model, signs):
    calm = {"learning_rate": 0.02, "batch": 40}  # the step comes after the last task
    untrained, trained = rows_of(model, signs, training=calm)
    assert trained["success"] == untrained["success"]
    assert trained["optimiser_steps"] == 1


@pytest.mark.slow
def test_the_same_run_is_played_the_same_again_and_leaves_no_trace_in_the_model(model, signs):
    first, second = rows_of(model, signs, "first.jsonl"), rows_of(model, signs, "second.jsonl")
    assert timeless(first) == timeless(second)
    assert rows_of(model, signs, "third.jsonl", methods=["zero-shot"])[0]["success"] == first[0]["success"]


@pytest.mark.slow
def test_the_same_weights_play_with_a_memory(model, signs):
    untrained, similar = rows_of(model, signs, methods=["zero-shot", "similarity"])
    assert untrained["shown"] == "0" * 40
    assert similar["cases"] == similar["success"].count("1")
    assert similar["declared"] == untrained["declared"]


def test_rewards_that_come_late_are_refused(model, signs):
    with pytest.raises(InvalidInput, match="learns from true rewards that come at once"):
        rows_of(model, signs, methods=[REINFORCE], rewards=["late=10"])


def broken_off(model: Path, data: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> Path:
    """Play until a task at which the judge fails, and return the checkpoint."""
    judged = iter(range(after))

    def judge(reply: str, label: str) -> float:
        if next(judged, None) is None:
            raise KeyError("a judge with a mistake")
        return float(reply.strip() == label)

    with monkeypatch.context() as patch:
        patch.setattr(type(STREAM), "reward", lambda self, reply, item: judge(reply, item.label))
        with pytest.raises(KeyError, match="a judge with a mistake"):
            rows_of(model, data, methods=[REINFORCE])
    (found,) = (data / "rows.work" / "gradient").glob("*.safetensors")
    return found


@pytest.mark.slow
def test_it_goes_on_from_the_last_step(model, signs, monkeypatch):
    (whole,) = rows_of(model, signs, "whole.jsonl", methods=[REINFORCE])
    broken_off(model, signs, monkeypatch, after=21)
    asked: list[str] = []
    reward = type(STREAM).reward
    monkeypatch.setattr(type(STREAM), "reward", lambda self, reply, item: asked.append(reply) or reward(self, reply, item))
    (resumed,) = rows_of(model, signs, methods=[REINFORCE])
    assert len(asked) == 40 - 16  # the episodes up to the second step are not played again
    assert timeless([resumed]) == timeless([whole])


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_used_is_refused(model, signs, monkeypatch):
    path = broken_off(model, signs, monkeypatch, after=21)
    kept = path.read_bytes()
    with pytest.raises(InvalidInput, match="a run with other settings"):
        rows_of(model, signs, methods=[REINFORCE], training={**QUICKLY, "kl": 0.2})
    for spoiled in (b"", b"no tensors", kept[:-10], kept.replace(b'"records":"{', b'"records":"[', 1)):
        path.write_bytes(spoiled)
        with pytest.raises(InvalidInput, match="is not a checkpoint"):
            rows_of(model, signs, methods=[REINFORCE])
    assert rows_of(model, signs, methods=["zero-shot"])[0]["n"] == 40  # the model is free again


def command(model: Path, data: Path, out: Path, *more: str) -> list[str]:
    own = ["--gradient", str(model), "--sampling", json.dumps(FREE), "--training", json.dumps(QUICKLY)]
    own += ["--stream", str(data / "signs.jsonl"), "--instruction", "Answer.", "--seeds", "1", "--out", str(out)]
    return ["bench", "run", *own, "--json", *more]


@pytest.mark.slow
@pytest.mark.long
def test_after_a_kill_it_ends_with_the_row_of_a_run_that_was_not_killed(model, tmp_path, capsys):
    data = write_signs(tmp_path, 120)
    assert main(command(model, data, tmp_path / "whole.jsonl")) == 0
    whole = json.loads(capsys.readouterr().out)
    killed, kills = tmp_path / "killed.jsonl", 0
    places = tmp_path / "killed.work" / "gradient"
    for _ in range(2):
        before = stamp_of(places)
        process = subprocess.Popen(
            [sys.executable, "-m", "cascade_memory", *command(model, data, killed)], stdout=subprocess.PIPE
        )
        while process.poll() is None and stamp_of(places) == before:  # until the next step of the optimiser
            time.sleep(0.005)
        time.sleep(0.05)  # and some episodes more
        kills += process.poll() is None
        process.kill()
        process.communicate()
    assert kills == 2
    assert REINFORCE not in killed.read_text()
    assert main(command(model, data, killed)) == 0
    assert timeless(json.loads(capsys.readouterr().out)) == timeless(whole)


def stamp_of(folder: Path) -> list[int]:
    return [one.stat().st_mtime_ns for one in folder.glob("*.safetensors")]


@pytest.mark.slow
@pytest.mark.parametrize("kl_form", ["published", "penalty"])
@pytest.mark.long
def test_it_learns_a_task_that_a_tiny_model_can_learn(model, tmp_path, kl_form):
    data = write_signs(tmp_path, 240)
    rows = rows_of(model, data, seeds=5, methods=[REINFORCE], training={**QUICKLY, "kl_form": kl_form})
    gains = [last - first for first, last in map(first_and_last_fifth, rows)]
    mean, half = interval(gains)
    assert mean - half > 0


def first_and_last_fifth(row: dict[str, Any]) -> tuple[float, float]:
    fifths = np.array_split(np.array([one == "1" for one in row["success"]]), 5)
    return float(fifths[0].mean()), float(fifths[-1].mean())


@pytest.mark.long
def test_the_command_prints_both_rows(model, signs, capsys):
    wanted = [one for one in command(model, signs, signs / "rows.jsonl", "--report", str(signs / "report")) if one != "--json"]
    assert main(wanted) == 0
    printed = capsys.readouterr().out
    assert "model tiny, in this process" in printed
    assert "REINFORCE + LoRA" in printed
    assert "80 requests" in printed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--training", '{"batch": 4}'], "--training can only be used with --gradient"),
        (["--gradient", "nowhere/at/all"], "there is no folder nowhere/at/all"),
        (["--gradient", ".", "--model", "m", "--base-url", "http://h"], "choose one of them"),
        (["--gradient", ".", "--training", '{"lr": 1}'], "no setting 'lr'"),
        (["--gradient", ".", "--tasks", "scienceworld"], "plays tasks with one answer each, not 'scienceworld'"),
        (["--gradient", ".", "--misled", "0.1"], "nor with --gradient"),
    ],
)
def test_wrong_options_are_refused(options, said, tmp_path, capsys):
    assert main(["bench", "run", *options, "--data", str(tmp_path), "--out", str(tmp_path / "rows.jsonl")]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_gradients_and_cases_are_played_side_by_side_with_the_same_weights(tmp_path, monkeypatch, capsys):
    """The script runs in this process, which has loaded the frameworks."""
    template = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} . {% endfor %}"
    model = make_language_model(tmp_path / "tiny", template=template)
    lines = [{"task": f"go to the {word}", "label": [{"label": "neutral"}]} for word in ("north", "south") * 10]
    (tmp_path / "sentifin.jsonl").write_text("\n".join(map(json.dumps, lines)))
    script = Path(__file__).parents[2] / "examples" / "benchmarks" / "gradients_beside_cases.py"
    options = ["--data", str(tmp_path), "--tasks", "20", "--seeds", "2", "--out", "rows.jsonl"]
    monkeypatch.setattr(sys, "argv", [str(script), str(model), *options])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in printed[1:]] == ["zero-shot", REINFORCE, "similarity", "CASCADE"]
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {row["declared"]["show"] for row in rows} == {"turns"}
    assert len({row["declared"]["weights"] for row in rows}) == 1
