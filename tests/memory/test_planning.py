"""How many tasks it takes to tell a lift, beside streams that are played."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pages import PROJECT

from cascade_memory.bandit.intervals import difference
from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.insight.planning import planned


def told(rng: np.random.Generator, tasks: int, succeeds: float, lift: float, holdout: float) -> bool:
    """Play a stream, and say whether the interval that report() computes lies above 0."""
    held = rng.random(tasks) < holdout
    rewards = (rng.random(tasks) < np.where(held, succeeds, succeeds + lift)).astype(float)
    return difference(rewards[~held], rewards[held]).low > 0.0


@pytest.mark.parametrize(
    ("succeeds", "lift", "holdout"), [(0.6, 0.05, 0.5), (0.6, 0.05, 0.1), (0.2, 0.1, 0.2), (0.85, 0.1, 0.5)]
)
def test_a_plan_agrees_with_a_thousand_streams(succeeds: float, lift: float, holdout: float):
    plan = planned(succeeds=succeeds, lift=lift, holdout=holdout)
    rng = np.random.default_rng(0)
    share = float(np.mean([told(rng, plan.tasks, succeeds, lift, holdout) for _ in range(1_000)]))
    assert 0.72 <= share <= 0.88  # 0.8, within a tenth of it
    line = f"| {succeeds:.0%} | {100 * lift:g} points | {holdout:.0%} | {plan.tasks:,} | {share:.1%} |".replace("%", " %")
    assert line in (PROJECT / "docs" / "time-to-help.md").read_text(encoding="utf-8")


def test_the_command_compares_shares_and_days(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "plan", "--succeeds", "0.6", "--a-day", "100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["holdout"] for one in found] == [0.05, 0.1, 0.2, 0.5]
    assert found[0]["tasks"] > 4 * found[-1]["tasks"]
    assert found[-1]["days"] == round(found[-1]["tasks"] / 100, 1)
    assert main(["bench", "plan", "--succeeds", "0.6"]) == 0
    assert "in four of five such experiments" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [
        {"lift": 0.0},
        {"lift": 0.5},
        {"holdout": 0.0},
        {"holdout": 1.0},
        {"succeeds": 1.5},
        {"a_day": 0.0},
        {"a_day": float("nan")},
    ],
)
def test_what_cannot_be_planned_is_refused(wrong: dict[str, float]):
    with pytest.raises(InvalidInput):
        planned(**{"succeeds": 0.6, **wrong})
