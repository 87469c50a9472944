"""A human in the loop: whom the rule asks about, what that costs and brings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.human import HUMAN, Discovery
from cascade_memory.evaluation.bench.measure import measure
from cascade_memory.evaluation.bench.stage import Simulated
from cascade_memory.evaluation.synthetic import tickets
from cascade_memory.evaluation.tasks.task import Item

N = 150


class Desk:
    name, instruction, max_steps = "desk", "Say what to do.", 1

    def items(self, data: Path) -> list[Item]:
        return [Item(one.query, one.solution) for one in tickets(N, 0)]

    def reward(self, reply: str, item: Item) -> float:
        return float(reply == item.label)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("human")
    methods = ["similarity", "CASCADE", *(one for one in HUMAN if "NP-CBR" not in one)]  # that one needs a reranker
    played = measure(
        Desk(),
        data=folder,
        solver=Simulated(alone=0.3),
        methods=methods,
        seeds=1,
        out=folder / "rows.jsonl",
        progress=False,
    )
    assert [json.loads(line)["method"] for line in (folder / "rows.jsonl").read_text().splitlines()] == methods
    return {row["method"]: row for row in played}


def by_hand(values: list[float], budget: int) -> list[bool]:
    """The rule, in other words: between the second and the third smallest of the last sixteen, in the middle."""
    asked: list[bool] = []
    for i, value in enumerate(values):
        smallest = sorted(values[max(0, i - 16) : i])
        below = i >= 16 and value < smallest[1] + 0.5 * (smallest[2] - smallest[1])
        asked.append(below and sum(asked) < budget)
    return asked


@pytest.mark.parametrize("n", [10, 60, 1000])
def test_the_rule_is_the_papers(n: int):
    values = np.random.default_rng(n).normal(size=n).tolist()
    discovery = Discovery("UCB", n, seed=0)
    asked = [discovery.asks_at(value) for value in values]
    assert asked == by_hand(values, n // 10)
    assert sum(asked) <= n // 10
    assert not any(asked[:16])


def test_at_random_a_tenth():
    discovery = Discovery("Random", 100_000, seed=0)
    assert sum(discovery.asks(()) for _ in range(50_000)) == pytest.approx(5_000, abs=300)
    assert sum(Discovery("Random", 19, seed=0).asks(()) for _ in range(200)) <= 200 // 10
    few = Discovery("Random", 19, seed=0)
    assert sum(few.asks(()) for _ in range(200)) == 1


def test_an_empty_memory_has_no_value():
    discovery = Discovery("Exploit", 1000, seed=0)
    assert not any(discovery.asks(()) for _ in range(40))
    assert not any(discovery.asks_at(-float(i)) for i in range(16))
    assert discovery.asks_at(-16.0)


@pytest.mark.long
def test_revision_keeps_the_truth_of_every_task(rows: dict[str, dict[str, Any]]):
    for method in ("similarity", "CASCADE"):
        revised, plain = rows[f"{method} + revision"], rows[method]
        assert revised["cases"] >= plain["cases"]
        labels_seen = revised["covered"].count("1")
        assert labels_seen >= plain["covered"].count("1")
        assert revised["rate"] >= plain["rate"]
        assert "asked" not in revised


@pytest.mark.long
@pytest.mark.parametrize("metric", ["Random", "Explore", "Exploit", "UCB"])
def test_a_row_of_discovery(metric: str, rows: dict[str, dict[str, Any]]):
    row = rows[f"CASCADE + discovery by {metric}"]
    asked = [i for i, one in enumerate(row["asked"]) if one == "1"]
    assert 0 < len(asked) <= N // 10
    assert {row["success"][i] for i in asked} == {"1"}
    assert {row["shown"][i] for i in asked} == {"0"}
    left = [int(row["success"][i]) for i in range(N) if i not in asked]
    assert row["rate_unasked"] == pytest.approx(np.mean(left))
    assert row["rate"] == pytest.approx((sum(left) + len(asked)) / N)
    assert 0.0 <= row["advantage"] <= 1.0


@pytest.mark.long
def test_where_nobody_knows_the_truth_nobody_can_be_asked(rows: dict[str, dict[str, Any]], tmp_path: Path):
    import dataclasses

    class Blind(Simulated):
        def stage(self, *arguments: Any) -> Any:
            return dataclasses.replace(Simulated.stage(self, *arguments), solutions=None)

    with pytest.raises(InvalidInput, match="needs known solutions"):
        measure(
            Desk(),
            data=tmp_path,
            solver=Blind(alone=0.3),
            methods=["CASCADE + revision"],
            seeds=1,
            limit=20,
            out=tmp_path / "rows.jsonl",
            progress=False,
        )
