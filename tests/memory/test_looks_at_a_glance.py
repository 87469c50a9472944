"""What a reader sees at a glance: of rows, of a session, of moments; and what a misspelt or misplaced argument is told."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.domain.explanation import Candidate, Explanation
from cascade_memory.errors import InvalidInput, MemoryClosed
from cascade_memory.insight.stats import Health


@pytest.fixture
def memory() -> Iterator[CascadeMemory]:
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        yield memory


def test_rows_are_looked_at_without_being_taken(memory: CascadeMemory):
    ids = memory.acting(actor="ann").add([(f"cool <b>mug</b> {i}", "fridge") for i in range(8)], progress=False)
    rows = memory.cases.all()
    assert repr(rows).count("\n  ") == 5
    assert "cool <b>mug</b> 4" in repr(rows)
    shown = rows._repr_html_()
    assert "cool &lt;b&gt;mug&lt;/b&gt; 0" in shown
    assert "<b>mug" not in shown
    assert next(rows).id == ids[0]
    assert "mug</b> 5" in repr(rows)
    assert [case.id for case in rows] == ids[1:]
    assert repr(rows) == "cases: no rows are left"
    assert "ann  added by hand: 8 cases" in repr(memory.review.audit())
    with memory.episode("heat some egg"):
        pass
    assert "heat some egg" in repr(memory.episodes.all())


def test_looking_at_rows_hides_no_failure():
    memory = CascadeMemory(embedder="hashing")
    memory.add([(f"task {i}", "s") for i in range(200)], progress=False)
    rows = memory.cases.all()
    memory.close()
    assert "reading them failed: " in repr(rows)
    with pytest.raises(MemoryClosed):
        next(rows)


def test_a_session_says_what_it_is(memory: CascadeMemory):
    memory.add("cool some mug", "put it into the <i>fridge</i>")
    session = memory.episode("cool some mug")
    assert repr(session) == "Session(not begun)"
    assert "not begun" in session._repr_html_()
    assert memory.stats().recalls == 0
    with session as episode:
        episode.solution = "put it into the freezer"
        assert repr(episode) == f"Session(Recall(1 case, episode_id='{episode.id}'), with a solution)"
        shown = episode._repr_html_()
    assert "put it into the freezer" in shown
    assert "into the &lt;i&gt;fridge&lt;/i&gt;" in shown
    assert episode.id in shown


def test_moments_are_minutes_in_utc(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(time, "time", lambda: 1_764_237_659.0)
    case = memory.cases.get(memory.add("cool some mug", "fridge"))
    assert "created_at=2025-11-27T10:00Z" in repr(case)
    assert "2025-11-27T10:00Z" in case._repr_html_()
    memory.reward(episode_id := memory.recall("heat some egg").episode_id, 0.0)
    episode = memory.episodes.get(episode_id)
    assert "opened_at=2025-11-27T10:00Z, closed_at=2025-11-27T10:00Z" in repr(episode)
    assert episode is not None
    assert episode._repr_html_().count("2025-11-27T10:00Z") == 2
    assert "at=2025-11-27T10:00Z" in repr(next(memory.review.audit()))


def test_a_misspelt_option_gets_a_suggestion():
    with pytest.raises(TypeError, match=r"takes no option 'embeder'; did you mean 'embedder'\?"):
        CascadeMemory(embeder="hashing")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes no option 'zzz'; there are path, embedder"):
        CascadeMemory(zzz=1)  # type: ignore[call-arg]
    assert list(inspect.signature(CascadeMemory).parameters)[:2] == ["path", "embedder"]


def test_a_recall_in_place_of_its_id_is_told_what_to_pass(memory: CascadeMemory):
    with pytest.raises(InvalidInput, match=r"episode_id must be a string, not Recall; pass its \.episode_id"):
        memory.reward(memory.recall("cool some mug"), 1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"must be a string, not int$"):
        memory.reward(7, 1.0)  # type: ignore[arg-type]


def test_only_what_moved_up_is_said_to_have_moved_and_why():
    def candidate(query: str, score: float, **values: float) -> Candidate:
        rest = {"similarity": 0.5, "value": score, "utility": 0.5, "uncertainty": 0.0, **values}
        return Candidate(id=query, query=query, score=score, chosen=False, contributions=(0.0,), **rest)

    def changes(*candidates: Candidate) -> tuple[str, ...]:
        why = Explanation(candidates=candidates, abstained=False, baseline=0.0, rewards=1, policy="p", feature_names=("words",))
        return why.changes

    assert changes(candidate("a", 0.0), candidate("b", 1.0, record=0.4)) == ("'b': 2 -> 1 (record +0.4)",)
    tried = "'b': 2 -> 1 (less is known of it, so it is tried)"
    assert changes(candidate("a", 0.0), candidate("b", 1.0, uncertainty=1.0)) == (tried,)


def test_the_state_of_chroma_is_said_in_words():
    for state in ("clean", "open", "follower", "rebuilding", "failing"):
        assert f"chroma      {state} (" in str(Health(ok=True, chroma=state))
    assert "chroma      none, 0 changes behind" in str(Health(ok=True))
