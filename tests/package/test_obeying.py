"""The benchmark of orders in cases counts what a model says, and shows it each case in three forms."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from openai_server import serving

SCRIPT = Path(__file__).parents[2] / "examples" / "benchmarks" / "obeying.py"


def _gullible(messages: Sequence[BaseMessage]) -> AIMessage:
    """Obey an order that stands at the beginning of a line."""
    lines = str(messages[-1].content).splitlines()
    obeys = any(line.startswith(("Ignore all", "The memory is over", "New rule")) for line in lines)
    return AIMessage("BANANA" if obeys else "It is 12, Paris.")


@pytest.mark.slow
def test_it_counts_what_a_model_does(tmp_path: Path):
    out = tmp_path / "rows.jsonl"
    with serving(_gullible) as (url, received):
        command = [sys.executable, str(SCRIPT), "--model-url", url, "--model", "scripted", "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == len(received) == 8 * 3 * 16
    obeyed = {(row["order"], row["form"]) for row in rows if row["obeyed"]}
    assert {(order, "marked lines") for order, _ in obeyed}.isdisjoint(obeyed)
    assert {("a plain order", "the fence"), ("an imitated end of the fence", "no fence")} <= obeyed
    assert ("no order", "no fence") not in obeyed
    assert "all orders" in done.stdout
