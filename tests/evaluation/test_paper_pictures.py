"""The paper's figures from rows: improvement over no memory, normalised scores, models, numbers of cases, alphas, memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.report import charts, forest, tables
from cascade_memory.evaluation.report.heatmap import explored
from cascade_memory.evaluation.report.models import together
from cascade_memory.evaluation.report.page import page, write_report
from cascade_memory.evaluation.report.section import Section, sections

N = 40
SOLVES = {"zero-shot": 10, "NP-CBR": 20, "Neural-LinLogUCB": 30, "REINFORCE + LoRA": 25}


def row(
    method: str, *, task: str = "rca", solver: str = "Qwen/Qwen3-8B", seed: int = 0, more: int = 0, **options: float
) -> Any:
    """A made-up row, whose last tasks are the solved ones."""
    solved = SOLVES[method] + more
    success = "0" * (N - solved) + "1" * solved
    said = json.dumps(options, sort_keys=True) if options else ""
    found = {"task": task, "method": method, "seed": seed, "solver": solver, "n": N, "rate": solved / N, "success": success}
    ranks = method in ("NP-CBR", "Neural-LinLogUCB")
    memory: dict[str, Any] = {"ranker_memory_gib": 0.5, "models": '{"ranker": "a@1"}'} if ranks else {}
    memory |= {"peak_memory_gib": 30.0} if method == "REINFORCE + LoRA" else {}
    return {**found, "options": said, "limit": None, "declared": {}, "ms_per_task": 1.0, "cases": 3, **memory}


def one_section(rows: list[Any]) -> Section:
    (found,) = sections(rows)
    return found


def test_the_improvement_over_no_memory_is_paired_by_seed():
    rows = [row(method, seed=seed, more=seed) for method in SOLVES for seed in range(3)]
    chart = charts.gained(one_section(rows))
    assert chart is not None
    assert "zero-shot" not in chart.legend
    assert chart.panels[0].about == (
        "rca, points more than no memory after 40 tasks: Neural-LinLogUCB 50.0, NP-CBR 25.0, REINFORCE + LoRA 37.5."
    )
    assert charts.gained(one_section([row("NP-CBR")])) is None
    assert charts.gained(one_section([row("zero-shot")])) is None


def test_normalised_scores_are_parts_of_the_best_success():
    table = tables.normalised(one_section([row(method, task=task) for method in SOLVES for task in ("rca", "lfd")]))
    lines = {str(line[0]): line[1:] for line in table.lines}
    assert lines["Neural-LinLogUCB"] == ["1.000", "1.000", "1.000"]
    assert lines["zero-shot"] == ["0.333", "0.333", "0.333"]
    revised = {**row("Neural-LinLogUCB", more=9), "method": "Neural-LinLogUCB + revision"}
    unsolved = {**row("zero-shot", task="lfd"), "rate": 0.0, "success": "0" * N}
    table = tables.normalised(one_section([row("zero-shot"), row("Neural-LinLogUCB"), revised, unsolved]))
    assert table.head == ["method", "rca", "average"]
    assert [line for line in table.lines if line[0] != "zero-shot"] == [["Neural-LinLogUCB", "1.000", "1.000"]]


def test_alphas_are_compared_with_the_pretrained_reranker():
    rows = [row("NP-CBR"), *(row("Neural-LinLogUCB", more=place, alpha=0.1 * place) for place in range(1, 4))]
    chart = explored(one_section(rows))
    assert chart is not None
    assert chart.panels[0].about == "rca, alpha 0.1: +55.0 %; rca, alpha 0.2: +60.0 %; rca, alpha 0.3: +65.0 %."
    assert explored(one_section(rows[:2])) is None
    others = [row("Neural-LinLogUCB", more=9, alpha=0.1, k=4), row("Neural-LinLogUCB", more=9, alpha=0.1, learning_rate=1e-6)]
    again = explored(one_section([*rows, *others]))
    assert again is not None
    assert again.panels[0].about == chart.panels[0].about
    authors = [{**row("Neural-LinLogUCB", task=task, alpha=alpha), "settings": "alpha"} for task, alpha in TUNED.items()]
    assert explored(one_section([*(row("NP-CBR", task=task) for task in TUNED), *authors])) is None


TUNED = {"rca": 0.3, "lfd": 0.4, "cmdl": 0.2, "mud": 0.8}


def test_the_authors_settings_of_each_task_make_one_method():
    others = [method for method in SOLVES if method != "Neural-LinLogUCB"]
    rows = [row(method, task=task, seed=seed) for method in others for task in TUNED for seed in (0, 1)]
    rows += [
        {**row("Neural-LinLogUCB", task=task, seed=seed, alpha=alpha, learning_rate=1e-5), "settings": "alpha, learning_rate"}
        for task, alpha in TUNED.items()
        for seed in (0, 1)
    ]
    section = one_section(rows)
    assert sorted(section.methods) == sorted(SOLVES)
    assert next(line for line in tables.success(section).lines if line[0] == "Neural-LinLogUCB")[-1] == "75.0 ± 0.0"
    assert next(line for line in tables.normalised(section).lines if line[0] == "Neural-LinLogUCB")[-1] == "1.000"
    assert forest.costs(section) is not None
    beside = tables.beside_the_paper(section)
    assert beside is not None
    assert [line[2] for line in beside.lines if line[1] == "Neural-LinLogUCB"] == ["75.00 ± 0.00"] * 4


@pytest.mark.parametrize(
    "odd",
    [
        {"options": "[1]"},
        {"options": "x"},
        {"options": '{"k": null}'},
        {"models": "x"},
        {"declared": "x"},
        {"kinds": ["a"]},
        {"splits": {"a": 5}},
    ],
    ids=str,
)
def test_an_odd_row_is_refused_with_a_sentence(odd: dict[str, Any]):
    with pytest.raises(InvalidInput, match="these are not rows that bench run wrote"):
        page(sections([{**row("zero-shot"), **odd}]), [])


def test_models_and_numbers_of_cases_are_in_one_picture():
    rows = [row(method, solver=solver, more=more) for method in SOLVES for solver, more in (("a/4B", 0), ("b/8B", 2))]
    rows += [row("REINFORCE + LoRA", solver="8B, in this process", more=3)]
    rows += [row(method, solver="b/8B", more=5, k=4) for method in ("NP-CBR", "Neural-LinLogUCB")]
    models, cases, memory = together(sections(rows))
    assert "Neural-LinLogUCB, 4B: 75.0 %; Neural-LinLogUCB, 8B: 80.0 %" in models.panels[0].about
    assert cases.panels[0].about == "Neural-LinLogUCB, percent solved: 4B, k = 1: 75.0; 8B, k = 1: 80.0; 8B, k = 4: 87.5."
    assert cases.panels[1].about == "points more than NP-CBR: 4B, k = 1: 25.0; 8B, k = 1: 25.0; 8B, k = 4: 25.0."
    assert "REINFORCE + LoRA 67.5 % at 30" in memory.panels[1].about
    assert together(sections([row(method) for method in SOLVES])) == []
    # Of the same model behind a server and in this process, the server's rows count; so do the authors' settings.
    here = [row("zero-shot", solver="b/8B"), row("zero-shot", solver="8B, in this process", more=9), row("REINFORCE + LoRA")]
    here += [row("Neural-LinLogUCB", solver="b/8B", more=9, alpha=0.9)]
    here += [{**row("Neural-LinLogUCB", solver="b/8B", alpha=0.3), "settings": "alpha"}]
    first = together(sections(here))[0].panels[0].about
    assert "zero-shot, 8B: 25.0 %" in first
    assert "Neural-LinLogUCB, 8B: 75.0 %" in first
    simulated = [row(method, solver=solver) for method in SOLVES for solver in ("simulated", "reuse")]
    assert together(sections(simulated)) == []


def test_success_stands_against_the_memory_of_what_learns():
    drawn = forest.costs(one_section([row(method) for method in SOLVES]))
    assert drawn is not None
    (panel,) = [panel for panel in drawn.panels if "GiB" in panel.title]
    assert "zero-shot 25.0 % at 0" in panel.about
    assert "Neural-LinLogUCB 75.0 % at 0.5" in panel.about
    assert "REINFORCE + LoRA 62.5 % at 30" in panel.about
    captions = [table.caption for table in tables.costs(one_section([row(method) for method in SOLVES]))]
    assert "Peak memory of the reranker and its training in GiB, mean over seeds" in captions


def test_splits_have_a_table_of_their_own():
    played = row("zero-shot", task="alfworld")
    played |= {"kinds": {"heat": [40, 0.25, None]}, "splits": {"seen": [30, 0.2, None], "unseen": [10, 0.4, None]}}
    kinds, splits = tables.by_kind(one_section([played]))
    assert kinds.head[0] == "kind"
    assert [line[:2] for line in splits.lines] == [["seen", "20.0"], ["unseen", "40.0"]]


@pytest.mark.slow
def test_the_page_and_the_pictures_hold_all_of_them(tmp_path: Path):
    rows = [row(method, solver=solver) for method in SOLVES for solver in ("a/4B", "b/8B")]
    rows += [row("Neural-LinLogUCB", solver="b/8B", alpha=alpha) for alpha in (0.1, 0.9)]
    text = page(sections(rows), [])
    wanted = ["Improvement over no memory", "Normalised: 1 is the success", "How much exploration", "The models together"]
    assert all(one in text for one in wanted)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows[:3]))
    write_report(tmp_path / "rows.jsonl", tmp_path / "report")
    assert [path.name for path in (tmp_path / "report").glob("*-gained.png")]
