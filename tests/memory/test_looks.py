"""What people look at: explanations, tables, HTML."""

from __future__ import annotations

import html.parser

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory
from cascade_memory.domain.explanation import Candidate, Explanation

_EVIL = "<script>alert('x')</script><img src=x onerror=y>"

_OF_CARDS = {
    *("div", "style", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "p", "details", "summary"),
    *("figure", "svg", "path", "circle", "text"),
}


class _Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)


def _tags(text: str) -> set[str]:
    parser = _Tags()
    parser.feed(text)
    return parser.tags


def test_case_text_is_escaped_wherever_it_becomes_html():
    with CascadeMemory(embedder="hashing", learn="inline", namespace=_EVIL) as memory:
        memory.add(_EVIL, _EVIL)
        recall = memory.cases.search(_EVIL, k=3)
        memory.reward(memory.recall(_EVIL).episode_id, 1.0, solution=_EVIL)
        for shown in (memory, recall, recall.explain(), memory.stats(), memory.health(), memory.report()):
            assert _tags(shown._repr_html_()) <= _OF_CARDS


def test_an_explanation_of_a_failed_recall_says_that_it_failed(ram: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    ram.add("q", "s")

    def broken(texts):
        raise OSError("the model is gone")

    monkeypatch.setattr(engine_of(ram).parts.embedder, "embed", broken)
    with pytest.warns(RuntimeWarning, match="going on without cases"):
        why = ram.recall("another question").explain()
    assert why.summary.startswith("the recall failed: ")
    assert "the model is gone" in str(why)


def test_an_explanation_says_what_there_is_to_say(ram: CascadeMemory):
    assert str(ram.recall("q").explain()) == "no case was stored yet"
    for i in range(60):
        recall = ram.recall(f"task {i % 5} of kind {i % 3}")
        ram.reward(recall.episode_id, 1.0, solution=f"s{i % 3}")
    why = ram.recall("task 1 of kind 2").explain()
    assert why.rewards == 60
    assert "60 rewards stand behind this" in why.summary
    for column in ("similarity", "utility", "uncertainty", "score"):
        assert column in str(why)
    shown = [one for one in why.candidates if one.chosen]
    assert len(shown) == 1
    assert 0 <= shown[0].utility <= 1
    assert shown[0].uncertainty >= 0


def explained(**candidates: tuple[float, float]) -> Explanation:
    """Explain a choice among candidates in the order of their similarity, each with its score and what its words add to it."""
    made = [
        Candidate(
            id=name,
            query=name,
            similarity=0.9 - 0.1 * place,
            value=score,
            uncertainty=0.1,
            score=score,
            utility=0.5,
            chosen=False,
            contributions=(0.9 - 0.1 * place, words),
        )
        for place, (name, (score, words)) in enumerate(candidates.items())
    ]
    return Explanation(
        candidates=tuple(made),
        abstained=False,
        baseline=0.4,
        rewards=3,
        policy="light-1",
        feature_names=("similarity", "words"),
    )


def test_an_explanation_tells_who_moved_and_what_moved_it():
    assert explained(first=(1.0, -1.0), second=(2.0, 1.5)).changes[0] == "'second': 2 -> 1 (words +2.5)"


def test_who_moved_is_compared_with_those_that_it_passed_and_no_others():
    moved = explained(first=(3.0, 0.0), second=(1.0, -1.0), third=(2.0, 1.0)).changes
    assert moved == ("'third': 3 -> 2 (words +2.0)",)


def test_an_abstention_is_explained_with_both_predictions(ram: CascadeMemory):
    for i in range(60):  # cases only ever mislead
        recall = ram.recall(f"question number {i}")
        ram.reward(recall.episode_id, 0.0 if recall.cases else 1.0, solution=f"unique {i}")
    recalls = [ram.recall(f"question number {i}") for i in range(60, 80)]
    assert sum(recall.abstained for recall in recalls) > 15
    why = next(recall for recall in recalls if recall.abstained).explain()
    assert "no case was shown" in why.summary
    assert "without" in why.summary


def test_short_representations_leak_no_case_text(ram: CascadeMemory):
    ram.add("a secret query", "a secret solution")
    for shown in (ram, ram.cases.search("a secret query")):
        assert "secret" not in repr(shown)
    assert "in RAM: gone when the process ends" in repr(ram)


def test_stats_and_health_print_as_tables_and_travel_as_json(ram: CascadeMemory):
    import json

    ram.reward(ram.recall("q").episode_id, 1.0, solution="s")
    assert "1 (1 distinct solution, 1 verification)" in str(ram.stats())
    assert "ok" in str(ram.health())
    assert json.loads(json.dumps(ram.stats().as_dict()))["cases"] == 1
    assert json.loads(json.dumps(ram.health().as_dict()))["ok"] is True
