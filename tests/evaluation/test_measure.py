"""A stream of one's own: from a file or a class, by function or by command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.bench.stage import Simulated
from cascade_memory.evaluation.judging.labels import exact, jaccard
from cascade_memory.evaluation.tasks.task import FileTask, Item

DESKS = ("restart the spooler", "ask accounting", "send a reset link", "order a chair")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CASCADE_DATA", raising=False)
    lines = [{"task": f"{desk.split()[-1]} trouble {n}", "label": desk} for n in range(10) for desk in DESKS]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


class Sums:
    name, instruction, max_steps = "sums", "Add.", 1

    def __init__(self, most: int = 6) -> None:
        self.most = most

    def items(self, data: Path) -> list[Item]:
        return [Item(f"{a} + {b}", str(a + b)) for a in range(self.most) for b in range(self.most)]

    def reward(self, reply: str, item: Item) -> float:
        return float(reply.strip() == item.label)


def sums(tmp_path: Path, task: Any = None, **options: Any) -> list[dict[str, Any]]:
    wanted: dict[str, Any] = {"solver": Simulated(alone=0.5), "seeds": 1, "methods": ["zero-shot", "similarity"], **options}
    return measure(task or Sums(), data=tmp_path, out=tmp_path / "rows.jsonl", progress=False, **wanted)


def test_a_class_is_played_and_not_played_again(tmp_path: Path):
    rows = sums(tmp_path)
    assert [(row["task"], row["method"], row["n"], row["solver"]) for row in rows] == [
        ("sums", "zero-shot", 36, "simulated"),
        ("sums", "similarity", 36, "simulated"),
    ]
    assert {name: rows[0]["declared"][name] for name in ("alone", "matched", "misled")} == {
        "alone": 0.5,
        "matched": 0.97,
        "misled": 0.5,
    }
    assert rows[0]["success"] == rows[0]["alone"]
    assert sums(tmp_path) == rows  # times and all: they were read


@pytest.mark.parametrize("other", [{"solver": Simulated(alone=0.6)}, {"task": Sums(7)}])
def test_rows_of_something_else_are_refused(other: dict[str, Any], tmp_path: Path):
    sums(tmp_path)
    with pytest.raises(InvalidInput, match="name another file"):
        sums(tmp_path, **other)


def test_rows_of_other_methods_with_another_solver_are_refused_before_anything_is_played(tmp_path: Path):
    sums(tmp_path, methods=["zero-shot"])
    before = (tmp_path / "rows.jsonl").read_bytes()
    with pytest.raises(InvalidInput, match=r"had alone = 0.5, and now it is 0.6.*name another file"):
        sums(tmp_path, methods=["similarity"], solver=Simulated(alone=0.6))
    assert (tmp_path / "rows.jsonl").read_bytes() == before


def test_what_cannot_be_measured_says_why(tmp_path: Path):
    @dataclass
    class Unhashable(Sums):
        most: int = 3

    with pytest.raises(InvalidInput, match="must be hashable"):
        sums(tmp_path, Unhashable())
    with pytest.raises(InvalidInput, match="no items"):
        sums(tmp_path, Sums(0))
    with pytest.raises(InvalidInput, match="no method 'magic'"):
        sums(tmp_path, methods=["magic"])
    with pytest.raises(InvalidInput, match="probabilities"):
        Simulated(alone=1.5)
    with pytest.raises(InvalidInput, match="must be at least 1"):
        sums(tmp_path, seeds=0)
    with pytest.raises(InvalidInput, match="no task 'bankingg'"):
        sums(tmp_path, "bankingg")
    assert not (tmp_path / "rows.jsonl").exists()


class Odd(Sums):
    def __init__(self, query: str, label: Any, name: str = "odd") -> None:
        self.odd, self.name = Item(query, label), name

    def items(self, data: Path) -> list[Item]:
        return [Item("1 + 1", "2"), self.odd]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (Odd("2 + 2", ""), "task 2 of 'odd': the label is empty"),
        (Odd("2 + 2", "fo\x00ur"), "task 2 of 'odd': the label contains the control character"),
        (Odd("2 + \ud800", "4"), "task 2 of 'odd': query contains a lone surrogate"),
        (Odd("2" * 100_001, "4"), "task 2 of 'odd': query has 100,001 characters"),
        (Odd("2 + 2", "4", name="lfd"), "'lfd' is the name of a stream of the catalogue"),
        (Odd("2 + 2", "4", name="alfworld-20"), "is the name of a stream of the catalogue"),
    ],
)
def test_a_task_that_cannot_be_played_is_found_before_any_is(task: Odd, said: str, tmp_path: Path):
    with pytest.raises(InvalidInput, match=said):
        sums(tmp_path, task)
    assert not (tmp_path / "rows.jsonl").exists()


def test_any_callable_may_judge(mine: Path):
    task = FileTask(name="mine", file="mine.jsonl", judge=partial(jaccard, above=0.5))
    assert len(sums(mine, task)) == 2
    with pytest.raises(InvalidInput, match="name another file"):  # another judge: those rows are not its own
        sums(mine, FileTask(name="mine", file="mine.jsonl", judge=exact))


@pytest.mark.slow
def test_the_command_on_a_file(mine: Path, capsys: pytest.CaptureFixture[str]):
    (mine / "mine.jsonl").write_text("\ufeff" + (mine / "mine.jsonl").read_text())  # as some editors write
    (mine / "my_judge.py").write_text("def half(reply, label):\n    return float(label[:3] in reply)\n")
    common = ["bench", "run", "--stream", "mine.jsonl", "--methods", "zero-shot", "similarity", "--seeds", "1", "--jobs", "1"]
    assert main([*common, "--alone", "0.5", "--out", "rows.jsonl", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["task"], row["n"], row["declared"]["alone"]) for row in rows] == [("mine", 40, 0.5)] * 2
    assert main([*common, "--alone", "0.5", "--out", "rows.jsonl", "--report", "page"]) == 0
    printed = capsys.readouterr().out
    assert "SIMULATED" in printed
    assert "nan" not in printed
    assert ("report: page/index.html" in printed) is (mine / "page" / "index.html").is_file()
    assert main([*common, "--alone", "0.6", "--out", "rows.jsonl"]) == 2
    assert "name another file" in capsys.readouterr().err
    model = ["--model", "m", "--base-url", "http://127.0.0.1:9"]
    for wrong, said in [
        ([], "--alone P for a SIMULATED solver"),
        (
            ["--alone", "0.5", "--judge", "my_judge:half"],
            "--judge can only be used with --model",
        ),  # it gives labels, not replies
        (["--alone", "0.5", "--out", "mine.jsonl"], "--out would write rows into the stream"),
        ([*model, "--judge", "nothing"], "a judge must be exact, jaccard, or module:function"),
        ([*model, "--judge", "my_judge:none"], "there is no judge 'my_judge:none'"),
        ([*model, "--judge", "my_judge:__name__"], "is not a function"),
        (["--alone", "0.5", "--base-url", "http://h"], "--base-url can only be used with --model"),
    ]:
        assert main([*common, *wrong]) == 2
        assert said in capsys.readouterr().err
