"""The board says what its published rows say."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from cascade_memory.evaluation.bench.summary import interval
from cascade_memory.evaluation.rivals import measures

ROOT = Path(__file__).parents[2]
STREAMS = ("llb-db", "bfcl", "bfcl-twins")
CALLED = {"the most similar case": "similarity", "no memory": "zero-shot"}
OTHERS = ("similarity", "BM25", "CASCADE untrained")
T_OF_FIVE = 2.776  # Student's t for a 95 % interval over five orders


@pytest.fixture(scope="module")
def rates() -> dict[tuple[str, str], np.ndarray]:
    with gzip.open(ROOT / "examples" / "benchmarks" / "board.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        assert row["rate"] == pytest.approx(row["success"].count("1") / row["n"])
        found.setdefault((row["method"], row["task"]), {})[row["seed"]] = 100.0 * row["rate"]
    return {of: np.array([by_seed[seed] for seed in range(5)]) for of, by_seed in found.items()}


def table(columns: int = len(STREAMS)) -> dict[str, list[str]]:
    """The rows of the table of the page whose first column is headed "memory", and which has this many more columns."""
    page = (ROOT / "docs" / "board.md").read_text()
    found = re.search(r"^\| memory " + r"\|[^|\n]*" * columns + r"\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert found is not None
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in rows}


def difference(rates: dict[tuple[str, str], np.ndarray], method: str, other: str, stream: str) -> str:
    each = rates[method, stream] - rates[other, stream]
    return f"{each.mean():+.1f} ± {T_OF_FIVE * each.std(ddof=1) / np.sqrt(5):.1f}"


def test_every_figure_of_the_table_is_that_of_the_rows(rates: dict[tuple[str, str], np.ndarray]):
    shown = table()
    assert {CALLED.get(name, name) for name in shown} == {method for method, _ in rates}
    for name, cells in shown.items():
        method = CALLED.get(name, name)
        for stream, cell in zip(STREAMS, cells, strict=True):
            against = "" if method == "similarity" else f" ({difference(rates, method, 'similarity', stream)})"
            assert cell == f"{rates[method, stream].mean():.1f}{against}"


def test_the_best_memory_stands_first(rates: dict[tuple[str, str], np.ndarray]):
    means = [rates[CALLED.get(name, name), "llb-db"].mean() for name in table()]
    assert means == sorted(means, reverse=True)


def test_the_sentences_say_what_the_rows_say(rates: dict[tuple[str, str], np.ndarray]):
    lines = (ROOT / "docs" / "board.md").read_text().splitlines()
    page = " ".join(" ".join(line for line in lines if not line.startswith("|")).split())
    always = "CASCADE, always a case"
    for method, other, stream in (
        ("CASCADE", "similarity", "bfcl"),
        ("CASCADE", "BM25", "llb-db"),
        (always, "BM25", "llb-db"),
        (always, "similarity", "llb-db"),
        (always, "CASCADE untrained", "llb-db"),
    ):
        assert re.search(rf"(?<!\d){re.escape(difference(rates, method, other, stream).lstrip('+'))}(?!\d)", page), (
            method,
            other,
        )


def test_the_table_of_measures_says_what_its_rows_say():
    with gzip.open(ROOT / "examples" / "benchmarks" / "board_measures.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    found = {cells[0]: cells[1:] for cells in measures.table(rows)}
    shown = {CALLED.get(name, name): cells for name, cells in table(len(measures.HEAD) - 1).items()}
    assert shown == found
    assert all({row["seed"] for row in rows if row["method"] == method} == set(range(5)) for method in found)
    gains = [float(cells[1].partition(" ")[0]) for cells in shown.values()]
    assert gains == sorted(gains, reverse=True)


def test_the_sentences_on_measures_say_what_the_rows_say():
    with gzip.open(ROOT / "examples" / "benchmarks" / "board_measures.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    by = {(row["method"], row["seed"]): measures.measured(row) for row in rows}
    page = " ".join((ROOT / "docs" / "board.md").read_text().split())
    always = "CASCADE, always a case"
    gain = [(always, other, [by[always, seed]["gain"] - by[other, seed]["gain"] for seed in range(5)]) for other in OTHERS]
    undone = [by[always, seed]["wrong rewards"] - by[always, seed]["repaired"] for seed in range(5)]
    for ours, other, values in [*gain, (always, "its wrong rewards", undone)]:
        mean, half = interval(values)
        assert f"{mean:.1f} ± {half:.1f}" in page, (ours, other)
    n = {len(row["success"]) for row in rows}, {len(row["asked"]) for row in rows}
    assert n == ({375}, {125})
