"""Other memories that the benchmark plays: a class with two methods is enough, and each known one does what its rule says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from rival_names import parameters

from cascade_memory.encoders.hashing import HashingEmbedder
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation import FileTask, Simulated, measure
from cascade_memory.evaluation.bench.methods import open_memory
from cascade_memory.evaluation.rivals.known import BM25, OTHER_MEMORIES, ExpRAG, Hybrid, MemRL, is_rival
from cascade_memory.evaluation.rivals.playing import Rival, played

MINE = """
class Newest:
    def __init__(self, embedder):
        self.cases = []

    def recall(self, task):
        return self.cases[-1:]

    def reward(self, task, shown, solution, reward):
        if reward == 1.0:
            self.cases.append((task, solution))


class Deaf:
    def __init__(self, embedder):
        pass

    def recall(self, task):
        return []
"""
CUP, LAMP, DESK = ("wash the red cup", "sink"), ("switch on the lamp", "switch"), ("clean the big desk", "cloth")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rivals_memory.py").write_text(MINE)
    lines = [{"task": f"ticket {n} about a {word}", "label": word} for n in range(12) for word in ("cup", "lamp")]
    (tmp_path / "stream.jsonl").write_text("\n".join(map(json.dumps, lines)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "rivals_memory", raising=False)
    return tmp_path


def told(rival: Rival) -> Rival:
    for task, solution in (CUP, LAMP, DESK):
        rival.reward(task, (), solution, 1.0)
    return rival


def test_a_class_with_two_methods_is_compared_with_ours(mine: Path):
    task = FileTask(name="stream", file="stream.jsonl", judge=lambda reply, label: float(reply == label), instruction="Answer.")
    rows = measure(
        task,
        data=mine,
        solver=Simulated(alone=0.3),
        methods=["rivals_memory:Newest", "similarity"],
        seeds=1,
        out=mine / "rows.jsonl",
        progress=False,
    )
    by_method = {row["method"]: row for row in rows}
    assert set(by_method) == {"rivals_memory:Newest", "similarity"}
    assert by_method["rivals_memory:Newest"]["cases"] == sum(map(int, by_method["rivals_memory:Newest"]["success"]))
    assert by_method["similarity"]["rate"] > by_method["rivals_memory:Newest"]["rate"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("rivals_memory:Nobody", "cannot load the memory"),
        ("no_such_module:Newest", "cannot load the memory"),
        ("rivals_memory:Deaf", "it has no reward"),
        ("rivals_memory:__doc__", "no class that takes an embedder"),
    ],
)
def test_what_is_no_memory_is_refused_with_a_sentence(mine: Path, name: str, says: str):
    with pytest.raises(InvalidInput, match=says):
        open_memory(name, HashingEmbedder())


@pytest.mark.parametrize("name", parameters(OTHER_MEMORIES))
def test_each_known_rival_begins_empty_and_finds_what_it_was_told(name: str):
    rival = OTHER_MEMORIES[name](HashingEmbedder())
    assert list(rival.recall("wash the cup")) == []
    assert told(rival).recall("wash the red cup")[0] == CUP


@pytest.mark.parametrize("name", parameters(name for name in OTHER_MEMORIES if name != "ExpRAG"))
def test_a_failure_is_never_shown(name: str):
    rival = OTHER_MEMORIES[name](HashingEmbedder())
    rival.reward(*CUP[:1], (), "oven", 0.0)
    assert list(rival.recall(CUP[0])) == []


def test_exprag_keeps_failures_in_the_way_of_successes_but_shows_none_first():
    rival = ExpRAG(HashingEmbedder())
    for number in range(ExpRAG.MOST):
        rival.reward(f"wash the red cup {number}", (), "oven", 0.0)
    rival.reward(*LAMP[:1], (), LAMP[1], 1.0)
    assert list(rival.recall("wash the red cup")) == []  # the four nearest all failed
    assert list(rival.recall("switch on the lamp")) == [LAMP]


def test_bm25_weighs_rare_words_more():
    rival = BM25(HashingEmbedder())
    for task, solution in [("order the cup", "a"), ("order the lamp", "b"), ("order the red desk", "c")]:
        rival.reward(task, (), solution, 1.0)
    assert rival.recall("order something red")[0][1] == "c"
    assert np.argsort(-rival.scores("order the lamp"))[0] == 1


def test_the_hybrid_shows_what_both_put_first():
    assert told(Hybrid(HashingEmbedder())).recall(LAMP[0])[0] == LAMP


def test_memrls_rule_turns_from_a_case_that_fails():
    rival = told(MemRL(HashingEmbedder()))
    for _ in range(12):
        shown = rival.recall("wash the red cup")
        rival.reward("wash the red cup", shown, "", 0.0)
    assert rival.recall("wash the red cup")[0] != CUP


def test_a_rival_takes_part_where_wrong_cases_are_added_and_counts_what_it_keeps():
    memory = played(BM25, HashingEmbedder())
    memory.add([CUP])
    assert memory.recall(CUP[0]).cases[0].solution == "sink"
    assert memory.stats().cases == 1
    assert not memory.health().failures


def test_names_of_rivals():
    assert all(map(is_rival, ["BM25", "package.module:Class"]))
    assert not any(map(is_rival, ["CASCADE, k = 2", "module:", "a b:C"]))
