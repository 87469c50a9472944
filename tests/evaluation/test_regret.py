"""Regret is counted for every task, and split only where equal solutions mean something."""

from __future__ import annotations

from cascade_memory.evaluation.report import charts, regret, tables
from cascade_memory.evaluation.report.section import sections


def test_regret_is_split_only_where_equal_solutions_mean_something():
    row = {"seed": 0, "method": "CASCADE", "n": 3, "rate": 1 / 3, "success": "001", "covered": "011", "fitting": "001"}
    for task, solver, known in (
        ("banking77", "some-model", True),
        ("my own", "some-model", True),  # the row itself says nothing if the judge of an own task is not exact
        ("spider", "some-model", False),
        ("sentifin", "some-model", False),
        ("sentifin", "simulated", True),
        ("scienceworld", "reuse", False),
    ):
        played = {**row, "task": task, "solver": solver}
        assert (regret.split(played) is not None) is known, (task, solver)
        total = regret.total(played)
        assert total is not None
        assert total.tolist() == [1, 2, 2]
    (section,) = sections([{**row, "task": "spider", "solver": "some-model"}])
    table, drawn_regret = tables.missed(section), charts.missed(section)
    assert table is not None
    assert drawn_regret is not None
    assert (table.head, table.lines[0][2]) == (["task", "method", "regret"], "2.0")
    assert [panel.title for panel in drawn_regret.panels] == ["spider: regret"]
    assert "coverage" not in drawn_regret.caption
