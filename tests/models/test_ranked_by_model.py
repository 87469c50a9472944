"""The ranker sees which share of a recall's metadata a case has, and expects the model that answered last."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inside import engine_of, state_of, stored_signal

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.encoders.light import FEATURES, METADATA

WORLD = Path(__file__).parents[2] / "examples" / "benchmarks" / "models_beside_each_other.py"
CASES = {
    "fridge": {"model": "small-1", "tags": ["a", "b"], "floor": 2},
    "freezer": {"model": "large-2", "floor": True},
    "window": None,
}


@pytest.fixture
def memory() -> CascadeMemory:
    memory = CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False))
    for place, (solution, metadata) in enumerate(CASES.items()):
        memory.add(f"cool some mug {place}", solution, metadata=metadata)
    return memory


def alike(memory: CascadeMemory, metadata: dict[str, Any]) -> dict[str, float]:
    """Return which share of the metadata each case has, by its solution."""
    ledger = engine_of(memory).parts.ledger
    keys = ledger.cases.keys_of([case.id for case in memory.cases.all()])
    shares = ledger.cases.alike(np.array(keys, np.int64), engine_of(memory).namespace_id("default"), metadata)
    stored = ledger.cases.by_key(keys)
    return {str(stored[key].solution): share for key, share in zip(keys, shares.tolist(), strict=True)}


@pytest.mark.parametrize(
    ("metadata", "fridge", "freezer"),
    [
        ({"model": "small-1"}, 1.0, 0.0),
        ({"model": "large-2", "floor": 2}, 0.5, 0.5),
        ({"tags": ["b", "c", "a", "d"]}, 0.5, 0.0),
        ({"floor": True}, 0.0, 1.0),  # True is not 1
        ({"floor": 2.0}, 1.0, 0.0),
        ({"model": "small-1'"}, 0.0, 0.0),
        ({"other": "small-1"}, 0.0, 0.0),
        ({"other": "small-1", "model": "b"}, 0.0, 0.0),  # another field has this value
        ({"model": "small-1", **{f"number {i}": i for i in range(40)}}, 1 / 16, 0.0),  # the first sixteen are compared
    ],
)
def test_the_share_of_the_metadata_that_a_case_has(
    memory: CascadeMemory, metadata: dict[str, Any], fridge: float, freezer: float
):
    assert alike(memory, metadata) == {"fridge": fridge, "freezer": freezer, "window": 0.0}


def asked(memory: CascadeMemory, **options: Any) -> list[str]:
    """Recall, and return the statements that read rows of metadata."""
    statements: list[str] = []
    with engine_of(memory).parts.ledger.connections.read() as connection:
        connection.set_trace_callback(statements.append)
    try:
        memory.recall("cool some mug", **options)
    finally:
        connection.set_trace_callback(None)
    return [one for one in statements if "FROM field" in one]


def column(memory: CascadeMemory, **options: Any) -> dict[str, float]:
    """Return the signal of each candidate of a recall, as it is stored, by its solution."""
    memory.recall("cool some mug", k=3, **options)
    return stored_signal(memory, METADATA)


def test_a_recall_with_metadata_puts_the_signal_into_its_row(memory: CascadeMemory):
    found = column(memory, metadata={"model": "large-2"})
    assert found["freezer"] > 1.0 > 0.0 > found["fridge"] == found["window"]


def test_a_recall_without_metadata_reads_nothing_for_it(memory: CascadeMemory):
    assert set(column(memory).values()) == {0.0}
    assert asked(memory) == []
    assert len(asked(memory, metadata={"model": "large-2"})) == 1


def test_the_model_that_answered_last_is_expected(memory: CascadeMemory):
    assert set(column(memory).values()) == {0.0}
    for name in ("small-1", "large-2"):
        memory.models.answered(memory.recall("cool some mug").episode_id, name)
    assert column(memory)["freezer"] > 1.0
    assert column(memory, metadata={"model": "small-1"})["fridge"] > 1.0  # what the caller says wins
    with memory.acting(namespace="other") as other:
        other.add("cool some mug", "fridge", metadata={"model": "large-2"})
        other.add("cool some mug or cup", "freezer")
        assert set(column(other).values()) == {0.0}  # nobody has answered there


def test_a_guess_is_not_stored_with_the_episode(memory: CascadeMemory):
    memory.models.answered(memory.recall("cool some mug").episode_id, "small-1")
    recall = memory.recall("cool some mug")
    assert memory.episodes.get(recall.episode_id).metadata == {}


def test_a_case_that_is_gone_has_no_share(memory: CascadeMemory):
    memory.forget(where={"model": "small-1"})
    assert alike(memory, {"model": "small-1"}) == {"freezer": 0.0, "window": 0.0}


def test_outcomes_teach_what_it_is_worth(memory: CascadeMemory):
    for number in range(40):
        recall = memory.recall(f"cool some mug {number}", metadata={"model": ("small-1", "large-2")[number % 2]})
        memory.reward(recall.episode_id, 1.0, solution=("fridge", "freezer")[number % 2])
    assert state_of(memory).policy.weights[FEATURES.index(METADATA)] > 0.5
    assert memory.recall("cool some mug 77", metadata={"model": "small-1"}).cases[0].solution == "fridge"
    assert memory.recall("cool some mug 77", metadata={"model": "large-2"}).cases[0].solution == "freezer"


def test_metadata_of_a_stranger_cannot_make_the_ledger_work_long(memory: CascadeMemory):
    """At most sixteen values are compared, and each by the index of its own value."""
    (statement,) = asked(memory, metadata={"tags": [f"tag {i}" for i in range(1_000)]})
    assert statement.count("tag ") == 32  # each value twice
    with engine_of(memory).parts.ledger.connections.read() as connection:
        plan = " ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))
    assert "SCAN" not in plan
    assert "cases_key=? AND namespace=? AND name=? AND value=?" in plan, plan


@pytest.mark.long
def test_after_a_change_of_the_model_the_ranker_prefers_cases_of_the_new_one():
    world = runpy.run_path(str(WORLD))
    late = {
        way: np.mean([world["play"](1.0, way, exchanged=True, seed=seed, tasks=400)[200:] for seed in range(2)])
        for way in ("reward", "answer")
    }
    assert late["answer"] > late["reward"] + 0.05, late
