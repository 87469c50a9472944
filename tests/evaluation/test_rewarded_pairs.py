"""The tool by which parts of the success process are judged."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascade_memory.assembly.rankers import START
from cascade_memory.bandit import success_process
from cascade_memory.ports.policy import Feedback, Slate

TOOL = Path(__file__).parents[2] / "examples" / "benchmarks" / "rewarded_pairs.py"


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(TOOL))


def _outcomes(of_case: bool, n: int = 120) -> list[Feedback]:
    """Rewards that depend on the case that was shown, or on nothing."""
    rng = np.random.default_rng(0)
    outcomes: list[Feedback] = []
    for key in range(n):
        case = int(rng.integers(8))
        query = np.array([1.0, 0.1 * rng.normal()], np.float32)
        query /= np.linalg.norm(query)
        reward = float(case % 2) if of_case else float(rng.random() < 0.5)
        slate = Slate(
            features=np.zeros((2, len(START))), similarity=np.array([0.9, 0.8]), groups=np.array([case, 99]), query=query
        )
        outcomes.append(
            Feedback(key=key, slate=slate, chosen=np.array([0]), context=np.zeros(3), shown=True, reward=reward, agreement=None)
        )
    return outcomes


def test_a_part_is_missed_where_rewards_depend_on_it_and_not_elsewhere(tool: dict[str, Any]):
    before = success_process.FAMILY
    lines = tool["table"]({"cases": [_outcomes(of_case=True)], "chance": [_outcomes(of_case=False)]})
    assert before == success_process.FAMILY
    assert lines[0] == "| | cases | chance |"
    rows = {line.split(" | ")[0].strip("| "): [float(cell) for cell in line.strip("| ").split(" | ")[1:]] for line in lines[2:]}
    assert rows["without families"][0] < -20.0
    assert rows["without families"][1] > 0.0
    assert rows["twice the variance of families"][0] > 0.0


@pytest.mark.slow
def test_it_plays_a_stream_and_prints_its_table(
    tool: dict[str, Any], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(
        sys,
        "argv",
        ["it", "--streams", "spider-aside", "--seeds", "1", "--limit", "30", "--data", str(data), "--work", str(tmp_path)],
    )
    tool["main"]()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "| | spider-aside |"
    assert len(printed) == 2 + len(tool["CHANGES"])
