"""The tally of each model, and its rows in the report."""

from __future__ import annotations

import json

import pytest

from cascade_memory import CascadeMemory, Ranking


@pytest.fixture
def memory() -> CascadeMemory:
    return CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False))


def judged(memory: CascadeMemory, model: str | None, value: float, solution: str | None = None, source: str = "host") -> None:
    recall = memory.recall("cool some mug", metadata={} if model is None else {"model": model})
    memory.reward(recall.episode_id, value, solution=solution, source=source)


def test_episodes_are_counted_with_and_without_a_case(memory: CascadeMemory):
    judged(memory, "small", 1.0, "fridge")  # no case was stored yet
    judged(memory, "small", 0.0)
    judged(memory, "large", 1.0, "freezer")
    judged(memory, "small", 1.0)
    judged(memory, None, 1.0)
    found = {one.model: one for one in memory.models.all()}
    small, large = found["small"], found["large"]
    assert list(found) == ["small", "large"]
    assert (small.episodes, small.shown, small.cases) == (3, 2, 1)
    assert small.with_case is not None
    assert small.without is not None
    assert (small.with_case.estimate, small.without.estimate) == (0.5, 1.0)
    assert (large.episodes, large.shown, large.cases, large.without) == (1, 1, 1, None)


def test_an_agents_own_word_and_what_was_taken_back_do_not_count(memory: CascadeMemory):
    judged(memory, "small", 1.0, source="agent")
    assert memory.models.all() == []
    recall = memory.recall("cool some mug", metadata={"model": "small"})
    memory.reward(recall.episode_id, 1.0)
    memory.reward(recall.episode_id, 0.0, overwrite=True)
    (small,) = memory.models.all()
    assert small.without is not None
    assert (small.episodes, small.without.estimate) == (1, 0.0)


def test_added_cases_have_a_model_only_if_their_metadata_do(memory: CascadeMemory):
    memory.add("cool some mug", "fridge", metadata={"model": "small"})
    memory.add("heat some mug", "oven", metadata={"of": '"model"'})
    memory.add("dry some mug", "towel", metadata={"model": 3})
    (small,) = memory.models.all()
    assert (small.model, small.episodes, small.cases, small.with_case, small.without) == ("small", 0, 1, None, None)


def test_namespaces_are_counted_apart_and_together(memory: CascadeMemory):
    judged(memory, "small", 1.0)
    other = memory.acting(namespace="other")
    judged(other, "small", 0.0)
    assert [one.episodes for one in other.models.all()] == [1]
    assert next(value for name, value in memory.report(everywhere=True).rows() if name == "by model").startswith(
        "small: 2 episodes; with a case –, without 0.500"
    )


def test_the_report_has_rows_only_if_a_model_is_known(memory: CascadeMemory):
    judged(memory, None, 1.0)
    assert "by model" not in str(memory.report())
    for number in range(10):
        judged(memory, f"model-{number}", 1.0, f"fridge {number}")
    report = memory.report()
    said = str(report)
    assert "by model    model-0: 1 episode; with a case –, without 1.000 (0.207 to 1.000); 1 case" in said
    assert "and 2 more: memory.models.all()" in said
    assert "model-9" not in said
    assert json.loads(json.dumps(report.as_dict()))["more"][0][0] == "by model"
    assert "model-0" in report._repr_html_()


def test_a_name_that_a_user_stored_cannot_forge_lines(memory: CascadeMemory):
    judged(memory, "small\nlift   0.9", 1.0)
    assert "\nlift   0.9" not in str(memory.report())
