"""The tables of a real model: a question counts once, whatever the orders are, and is compared with itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import PROJECT

from cascade_memory.evaluation.bench.stage import order_of

FOLDER = PROJECT / "examples" / "benchmarks"
N = 40


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    import real_models

    return real_models


def row(task: str, method: str, seed: int, solved: np.ndarray) -> dict[str, Any]:
    """A row in which a question is solved or not, whatever its place."""
    marks = "".join("01"[int(solved[question])] for question in order_of(N, seed))
    return {"task": task, "method": method, "seed": seed, "order": "", "n": N, "success": marks}


def rows(task: str) -> list[dict[str, Any]]:
    easy, hard = np.arange(N) % 2 == 0, np.arange(N) % 4 == 0
    played = [("zero-shot", hard), ("similarity", hard), ("CASCADE", easy)]
    return [row(task, method, seed, solved) for method, solved in played for seed in range(3)]


def test_questions_are_compared_with_themselves(script: Any):
    stream = script.Stream(rows("banking77"), stretch=10)
    found = stream.differences("CASCADE")
    gained = np.where(np.arange(N) % 4 == 2, 100.0, 0.0)
    assert found["against zero-shot"] == pytest.approx((25.0, gained.var(ddof=1) / N))
    assert found["against zero-shot"] == found["against similarity"]
    assert stream.differences("similarity")["against zero-shot"] == (0.0, 0.0)
    assert [line[:2] for line in stream.table()[1:]] == [["zero-shot", "25.0"], ["similarity", "25.0"], ["CASCADE", "50.0"]]


def test_a_stretch_has_the_questions_that_stood_there(script: Any):
    first = script.successes(rows("banking77")[6:7], slice(10))
    assert set(np.flatnonzero(~np.isnan(first))) == set(order_of(N, 0)[:10])


def test_it_prints_each_stream_and_their_mean(
    script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(one) for task in ("banking77", "rca") for one in rows(task)))
    picture = tmp_path / "differences.png"
    monkeypatch.setattr(sys, "argv", ["real_models.py", str(file), "--stretch", "10", "--plot", str(picture)])
    script.main()
    assert picture.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "banking77, 40 tasks, 3 orders" in printed
    last = printed.splitlines()[-1].split(" | ")
    assert last[0] == "| CASCADE"
    assert last[1].startswith("+25.0 [15.4, 34.6]"), "the same in two streams: half the variance"


def test_a_picture_needs_the_method_that_it_compares_with(
    script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    file, picture = tmp_path / "rows.jsonl", tmp_path / "differences.png"
    file.write_text("\n".join(json.dumps(one) for one in rows("rca") if one["method"] != "zero-shot"))
    monkeypatch.setattr(sys, "argv", ["real_models.py", str(file), "--plot", str(picture)])
    with pytest.raises(SystemExit):
        script.main()
    assert "play the method zero-shot on each stream" in capsys.readouterr().err
    assert not picture.exists()
