"""A reranker, an embedder, k, alpha and a learning rate: for every method, and part of what identifies a row."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_models import WORDS, make_embedder, make_reranker, sentence_layout

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.evaluation.bench.human import HUMAN
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.bench.methods import NEED_A_RERANKER
from cascade_memory.evaluation.bench.on_reranker import RERANKED
from cascade_memory.evaluation.bench.plan import Run
from cascade_memory.evaluation.bench.rows import Rows, read_rows
from cascade_memory.evaluation.bench.setup import Setup, told_apart
from cascade_memory.evaluation.bench.stage import Simulated
from cascade_memory.evaluation.report.section import sections
from cascade_memory.evaluation.tasks.task import Item

N = 40
PAPER = ("zero-shot", "ICRL", "ICRLPlus", *RERANKED)


class Chores:
    """Tasks of words that the tiny models know; the solution depends on the first word."""

    name, instruction, max_steps = "chores", "Do it.", 1

    def items(self, data: Path) -> list[Item]:
        verbs = ("heat", "cool", "clean", "open")
        return [Item(f"{verbs[i % 4]} the {WORDS[(7 * i) % len(WORDS)]} on desk {i % 30}", verbs[i % 4]) for i in range(N)]

    def reward(self, reply: str, item: Item) -> float:
        return float(reply == item.label)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    embedder = make_embedder(folder / "embedder", files=sentence_layout({"pooling_mode_cls_token": True}))
    return {"ranker": str(make_reranker(folder / "reranker")), "embedder": str(embedder)}


def played(tmp_path: Path, methods: Any, setup: Setup, **options: Any) -> list[dict[str, Any]]:
    settings = {"solver": Simulated(alone=0.3), "out": tmp_path / "rows.jsonl", "seeds": 1, "progress": False, **options}
    return measure(Chores(), data=tmp_path, methods=methods, setup=setup, **settings)


@pytest.mark.long
def test_every_method_of_the_paper_sits_on_the_reranker(models: dict[str, str], tmp_path: Path):
    rows = {row["method"]: row for row in played(tmp_path, PAPER, Setup(**models))}
    assert list(rows) == list(PAPER)
    assert rows["zero-shot"]["models"] == ""
    assert set(json.loads(rows["ICRL"]["models"])) == {"embedder"}
    for method in RERANKED:
        named = json.loads(rows[method]["models"])
        assert set(named) == {"embedder", "ranker"}
        assert named["ranker"].startswith("reranker@")
        assert rows[method]["embedder"].startswith("text-model-1:modernbert:")
        assert rows[method]["n"] == N
        assert "1" in rows[method]["shown"]
    choices = {rows[method]["fitting"] for method in RERANKED}
    assert len(choices) > 3, "the methods choose differently"


@pytest.mark.long
def test_a_human_helps_methods_on_the_reranker_in_other_processes(models: dict[str, str], tmp_path: Path):
    methods = ["NP-CBR + revision", "Neural-LinLogUCB + discovery by UCB"]
    rows = played(tmp_path, methods, Setup(**models, k=2), jobs=2, limit=25)
    assert all("reranker@" in row["models"] and row["options"] == '{"k": 2.0}' for row in rows)
    assert len(rows[1]["asked"]) == 25
    assert {"Neural-LinLogUCB + revision", "CASCADE + revision"} <= set(HUMAN)


def test_each_method_takes_the_settings_that_concern_it():
    setup = Setup(k=4, alpha=0.3, learning_rate=1e-4)
    taken = {method: setup.of(Run("rca", method, 0)).options for method in (*PAPER, "CASCADE", "CASCADE, k = 2", "random")}
    assert {method: list(json.loads(options or "{}")) for method, options in taken.items()} == {
        "zero-shot": [],
        "ICRL": ["k"],
        "ICRLPlus": ["k"],
        "NP-CBR": ["k"],
        "LinLogUCB": ["alpha", "k"],
        "NeuralLogUCB": ["alpha", "k"],
        "Neural-LinUCB": ["alpha", "k", "learning_rate"],
        "Thompson": ["alpha", "k", "learning_rate"],
        "Neural-LinLogUCB": ["alpha", "k", "learning_rate"],
        "Neural-LinLogUCB without exploration": ["k", "learning_rate"],
        "Neural-LinLogUCB, exact theta": ["alpha", "k", "learning_rate"],
        "Neural-LinLogUCB, authors' code": ["alpha", "k", "learning_rate"],
        "CASCADE": ["alpha", "k"],
        "CASCADE, k = 2": [],
        "random": ["k"],
    }


@pytest.mark.slow
def test_settings_without_a_reranker_are_those_of_the_light_methods(tmp_path: Path):
    methods = [method for method in PAPER if method not in NEED_A_RERANKER] + ["CASCADE", "CASCADE, always a case"]
    rows = played(tmp_path, methods, Setup(k=3, alpha=0.7, learning_rate=0.05))
    assert [row["method"] for row in rows] == methods
    assert {row["models"] for row in rows} == {""}


@pytest.mark.slow
def test_rows_with_other_models_or_settings_are_other_rows(models: dict[str, str], tmp_path: Path):
    other = dict(models, ranker=str(make_reranker(tmp_path / "other", seed=3)))
    for setup in (Setup(), Setup(**models), Setup(**other), Setup(**models, k=2), Setup(embedder=models["embedder"])):
        played(tmp_path, ["LinLogUCB"], setup, limit=12)
    before = (tmp_path / "rows.jsonl").read_bytes()
    assert before.count(b"\n") == 5
    shutil.copytree(models["ranker"], tmp_path / "elsewhere" / "reranker")  # the same weights in another place
    played(tmp_path, ["LinLogUCB"], Setup(**dict(models, ranker=str(tmp_path / "elsewhere" / "reranker"))), limit=12)
    assert (tmp_path / "rows.jsonl").read_bytes() == before
    rows = read_rows(tmp_path / "rows.jsonl")
    (section,) = sections(rows)
    assert len(section.methods) == 5, "the report does not take one for the other"
    assert len({row["method"] for row in told_apart(rows)}) == 4


def test_older_rows_are_still_their_runs_and_icrl_had_32_trials(tmp_path: Path):
    path = tmp_path / "old.jsonl"
    common = {"task": "rca", "seed": 0, "limit": None, "solver": "simulated"}
    old = [{**common, "method": method} for method in ("CASCADE", "ICRL")]
    path.write_text("".join(json.dumps(row) + "\n" for row in old))
    wanted = [Run("rca", "CASCADE", 0), Run("rca", "ICRL", 0), Setup(k=32).of(Run("rca", "ICRL", 0))]
    assert Rows(path).missing(wanted) == [Run("rca", "ICRL", 0)]


def test_what_was_called_np_cbr_without_a_reranker_is_called_similarity(tmp_path: Path):
    path = tmp_path / "old.jsonl"
    common = {"task": "rca", "seed": 0, "limit": None, "solver": "simulated"}
    with_one = {**common, "method": "NP-CBR", "models": '{"ranker": "reranker@abc"}'}
    old = [{**common, "method": "NP-CBR"}, {**common, "method": "NP-CBR + revision", "models": ""}, with_one]
    path.write_text("".join(json.dumps(row) + "\n" for row in old))
    assert [row["method"] for row in read_rows(path)] == ["similarity", "similarity + revision", "NP-CBR"]


@pytest.mark.slow
def test_what_cannot_be_played_says_why(models: dict[str, str], tmp_path: Path):
    with pytest.raises(InvalidInput, match="needs a reranker"):
        played(tmp_path, ["Neural-LinLogUCB, authors' code"], Setup())
    with pytest.raises(InvalidInput, match="k must be at least 1"):
        Setup(k=0)
    with pytest.raises(InvalidInput, match="alpha must be a number"):
        Setup(alpha=float("nan"))
    with pytest.raises(InvalidInput, match="no classification head"):
        played(tmp_path, ["NP-CBR"], Setup(ranker=models["embedder"]))
    with pytest.raises(InvalidInput, match="there is no folder"):
        played(tmp_path, ["NP-CBR"], Setup(ranker="no such folder"))


@pytest.mark.slow
def test_without_pytorch_the_extra_of_a_reranker_is_named(
    models: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r'pip install "cascade-memory\[cross-encoder\]"'):
        played(tmp_path, ["NP-CBR"], Setup(ranker=models["ranker"]))


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    lines = [json.dumps({"task": item.query, "label": item.solution}) for item in Chores().items(tmp_path)]
    (tmp_path / "banking77.jsonl").write_text("\n".join(lines))
    return tmp_path


@pytest.mark.long
def test_the_commands(models: dict[str, str], stream: Path, capsys: pytest.CaptureFixture[str]):
    chosen = ["--ranker", models["ranker"], "--embedder", models["embedder"], "--k", "2", "--jobs", "1", "--data", str(stream)]
    out = stream / "rows.jsonl"
    command = [
        "bench",
        "run",
        *chosen,
        "--alpha",
        "0.2",
        "--lr",
        "1e-5",
        "--tasks",
        "banking77",
        "--limit",
        "20",
        "--seeds",
        "1",
    ]
    methods = ["zero-shot", "NP-CBR", "NeuralLogUCB", "Neural-LinLogUCB"]
    assert main([*command, "--methods", *methods, "--out", str(out), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[-1]["options"] == '{"alpha": 0.2, "k": 2.0, "learning_rate": 1e-05}'
    assert main([*command, "--methods", *methods, "--out", str(out)]) == 0  # from the rows
    assert "Neural-LinLogUCB" in capsys.readouterr().out
    tuned = ["bench", "tune", *chosen, "--task", "banking77", "--limit", "20", "--out", str(stream / "tuning.jsonl")]
    assert main([*tuned, "--learning-rates", "1e-5", "1e-3", "--alphas", "0.1", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["winner"]) == {"learning_rate", "alpha"}
    tuning = read_rows(stream / "tuning.jsonl")
    assert len(tuning) == 3
    assert all('"k": 2.0' in row["options"] and "reranker@" in row["models"] for row in tuning)
