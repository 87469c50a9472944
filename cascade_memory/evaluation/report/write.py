"""Writes the report of a file of rows into a folder: the page and its pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.bench.rows import read_rows
from cascade_memory.evaluation.report import charts, forest
from cascade_memory.evaluation.report.drawing import Chart, png
from cascade_memory.evaluation.report.heatmap import tried
from cascade_memory.evaluation.report.models import ALL_MODELS, of_a_model, together
from cascade_memory.evaluation.report.page import page
from cascade_memory.evaluation.report.section import Section, sections
from cascade_memory.looks import need_matplotlib

PAGE = "index.html"


def write_report(rows: Path, folder: Path, tuning: Path | None = None, against: Sequence[str] = ()) -> Path:
    """Write the page and the PNGs of a file of rows into a folder; return the page's path.

    Every method is compared with no memory, and with the methods that show the most similar case, the case that a pretrained
    reranker puts first, or a random case. ``against`` names further methods to compare with.
    """
    need_matplotlib("the report")
    found = sections(read_rows(rows), against)
    if not found:
        raise InvalidInput(f"{rows} has no rows yet: cascade-memory bench run --out {rows} writes them")
    tuned = tried(read_rows(tuning)) if tuning is not None else []
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [(section, one) for section in found for one in _charts(section) if one is not None]
    named = [(section.solver, section.title, one) for section, one in [*drawn, *tuned]]
    named += [("models", ALL_MODELS, one) for one in together(found)]
    for i, (solver, title, one) in enumerate(named):
        solver = re.sub(r"[^a-z0-9]+", "-", solver.lower()).strip("-")
        png(one, title, folder / f"{i:02}-{solver}-{one.name}.png")
    target = folder / PAGE
    target.write_text(page(found, tuned), encoding="utf-8")
    return target


def _charts(section: Section) -> list[Chart | None]:
    return [
        charts.success(section),
        *of_a_model(section),
        charts.steps(section),
        forest.forest(section),
        charts.missed(section),
        forest.costs(section),
    ]
