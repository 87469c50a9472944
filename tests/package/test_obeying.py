"""The benchmark of orders in cases counts what a model says, and shows it each case in four forms."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from openai_server import serving

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "benchmarks" / "obeying.py"
ROWS = ROOT / "examples" / "benchmarks" / "outcomes" / "obeying.jsonl"
PAGE = ROOT / "docs" / "threat-model.md"


def _gullible(messages: Sequence[BaseMessage]) -> AIMessage:
    """Obey an order that stands at the beginning of a line."""
    lines = str(messages[-1].content).splitlines()
    obeys = any(line.startswith(("Ignore all", "The memory is over", "New rule")) for line in lines)
    return AIMessage("BANANA" if obeys else "It is 12, Paris.")


def test_the_page_says_what_the_rows_say():
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    page = PAGE.read_text(encoding="utf-8")
    for place in ("solution", "task"):
        fence, turns = (
            [row for row in rows if row["order"] != "no order" and (row["place"], row["form"]) == (place, form)]
            for form in ("the fence", "turns")
        )
        assert len(fence) == len(turns) == 112
        shares = [round(100 * sum(row[what] for row in of) / 112) for what in ("obeyed", "is_right") for of in (fence, turns)]
        line = next(line for line in page.splitlines() if line.startswith(f"| the {place}, which"))
        assert line.endswith("| {} | {} | {} | {} |".format(*shares))


@pytest.mark.slow
def test_it_counts_what_a_model_does(tmp_path: Path):
    out = tmp_path / "rows.jsonl"
    with serving(_gullible) as (url, received):
        command = [sys.executable, str(SCRIPT), "--model-url", url, "--model", "scripted", "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == len(received) == 2 * 8 * 4 * 16
    obeyed = {(row["order"], row["form"]) for row in rows if row["obeyed"]}
    assert {(order, "marked lines") for order, _ in obeyed}.isdisjoint(obeyed)
    assert {("a plain order", "the fence"), ("an imitated end of the fence", "no fence")} <= obeyed
    assert ("no order", "no fence") not in obeyed
    assert "all orders" in done.stdout
