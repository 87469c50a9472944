"""A memory of an agent whose solutions never recur: what it learns, says, saves and forgets."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cascade_memory import CascadeMemory, Ranking

ROOMS = ("kitchen", "cellar", "garden", "attic", "garage", "hall")


def _task(rng: random.Random, kind: str) -> str:
    return f"{kind} number {rng.randrange(10_000)} in the {rng.choice(ROOMS)}"


def _work(memory: CascadeMemory, episodes: int, *, seed: int = 0) -> list[float]:
    """Play tasks of two kinds. What was made by the careful way works for repairs; nothing works for puzzles."""
    rng, rewards = random.Random(seed), list[float]()
    for number in range(episodes):
        kind = rng.choice(("repair the lamp", "solve the puzzle"))
        recall = memory.recall(_task(rng, kind))
        shown = str(recall.cases[0].solution) if recall.cases else ""
        won = kind == "repair the lamp" and "careful" in shown
        rewards.append(float(won))
        made = f"{shown}, then note {number}" if won else None
        memory.reward(recall.episode_id, float(won), solution=made)
    return rewards


def _start(memory: CascadeMemory) -> None:
    rng = random.Random(99)
    for number in range(6):
        way = (
            "careful way: cut the power, open the case, change the bulb"
            if number == 3
            else f"hasty way {number}: hit it hard, shout"
        )
        memory.add(_task(rng, "repair the lamp"), way)
        memory.add(_task(rng, "solve the puzzle"), f"guess {number}, turn every piece around")


@pytest.mark.slow
def test_it_finds_the_family_that_works_and_says_what_it_learned(on_disk: Callable[..., CascadeMemory]):
    first, last = 0.0, 0.0
    for seed in (3, 2, 1, 0):  # in one of them alone, chance decides as much
        always = Ranking(abstain=False)
        memory = CascadeMemory(embedder="hashing", learn="inline", ranking=always) if seed else on_disk(ranking=always)
        _start(memory)
        rewards = _work(memory, 120, seed=seed)
        first, last = first + sum(rewards[:40]), last + sum(rewards[-40:])
        if seed:
            memory.close()
    assert last > first
    why = memory.recall("repair the lamp number 7 in the hall").explain()
    best = next(one for one in why.candidates if one.chosen)
    assert best.record > 0.3
    assert best.value == pytest.approx(sum(best.contributions), abs=1e-6)
    assert 0.0 <= why.trust <= 1.0
    hard = memory.recall("solve the puzzle number 7 in the hall").explain()
    assert hard.ease < -0.02 < why.ease
    assert "less often than usual" in str(hard)
    assert "only rewards teach" in hard._repr_html_()
    learned = memory.report().learned
    assert learned is not None
    assert (learned.by, learned.rewards, learned.trust) == ("rewards", 120, pytest.approx(why.trust))
    assert learned.families[0] > 10  # what was made from the careful way
    assert f"the largest with {learned.families[0]} cases" in str(memory.report())
    assert memory.report(everywhere=True).learned is None


def test_what_it_learned_survives_closing_and_is_the_same_when_learned_again(on_disk: Callable[..., CascadeMemory]):
    memory = on_disk(ranking=Ranking(abstain=False))
    _start(memory)
    _work(memory, 60)
    task = "repair the lamp number 7 in the hall"

    def scores(one: CascadeMemory) -> list[float]:
        return [candidate.score for candidate in one.recall(task).explain().candidates]

    before = scores(memory)
    memory.close()
    memory = on_disk(ranking=Ranking(abstain=False))
    np.testing.assert_allclose(scores(memory), before, atol=1e-4)
    memory.data.refit()
    np.testing.assert_allclose(scores(memory), before, atol=0.05)


@pytest.mark.parametrize(
    ("table", "column", "damaged"),
    [
        ("episode_vector", "vector", np.full(384, np.nan, np.float32).tobytes()),
        ("episode_vector", "vector", np.full(384, 1e30, np.float32).tobytes()),
        ("episode_vector", "vector", np.ones(3, np.float32).tobytes()),
        ("outcome", "value", float("inf")),
        ("outcome", "value", 1e9),
        ("outcome", "value", "much"),
        ("cases", "solution", "abc"),
    ],
)
def test_a_damaged_row_is_left_out_of_what_is_learned(
    on_disk: Callable[..., CascadeMemory], tmp_path: Path, table: str, column: str, damaged: object
):
    memory = on_disk(ranking=Ranking(abstain=False))
    _start(memory)
    _work(memory, 60)
    task = "repair the lamp number 7 in the hall"
    before = {one.id: one.score for one in memory.recall(task).explain().candidates}
    memory.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "memory" / "ledger.sqlite3")) as connection:
        (key,) = connection.execute(f"SELECT key FROM {table} ORDER BY key LIMIT 1 OFFSET 20").fetchone()
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE key = ?", (damaged, key))
        connection.commit()
    memory = on_disk(ranking=Ranking(abstain=False))
    memory.data.refit()
    after = {one.id: one.score for one in memory.recall(task).explain().candidates}
    both = before.keys() & after.keys()
    assert len(both) > len(before) - 3
    differences = sorted(abs(after[one] - before[one]) for one in both)
    between = max(before.values()) - min(before.values())
    assert differences[-2] < between / 10  # the case of a damaged row may lose its family, and without it the form counts less
    memory.reward(memory.recall(task).episode_id, 1.0, solution="careful way: cut the power")
    assert memory.recall(task).error is None
