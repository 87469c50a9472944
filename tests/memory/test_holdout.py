"""A share of episodes runs without memory: which, what they are shown, and what is learned from them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.bandit.light import CONTEXT_PRIOR
from cascade_memory.cycle.select import Exposure
from cascade_memory.errors import InvalidInput


def _held_out(share: float = 0.5) -> str:
    return next(f"run {i}" for i in range(100) if Exposure(holdout=share).arm_of(f"run {i}") == "holdout")


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(holdout=0.5)) as memory:
        memory.add("heat the cup", "use the microwave")
        yield memory


def test_an_episode_that_is_held_out_is_shown_nothing_and_says_why(memory: CascadeMemory):
    recall = memory.recall("heat a cup", episode_id=_held_out())
    assert (recall.arm, recall.cases, recall.abstained, recall.render()) == ("holdout", (), False, "")
    why = recall.explain()
    assert "runs without memory" in why.summary
    assert [one.query for one in why.candidates] == ["heat the cup"]
    assert "shown" not in str(why)
    assert memory.episodes.get(recall.episode_id).arm == "holdout"  # type: ignore[union-attr]
    assert memory.stats().shown == 0


def test_a_later_recall_of_the_episode_is_in_the_same_arm_whatever_the_setting_is_then(on_disk):
    first = on_disk(ranking=Ranking(holdout=0.5))
    first.add("heat the cup", "use the microwave")
    first.recall("heat a cup", episode_id=_held_out())
    live = next(
        f"run {i}"
        for i in range(100)
        if Exposure(holdout=0.9).arm_of(f"run {i}") == "holdout" != first.recall("q", episode_id=f"run {i}").arm
    )
    for share in (0.0, 0.5, 0.9):
        with on_disk(ranking=Ranking(holdout=share)) as other:
            assert other.recall("the cup again", episode_id=_held_out()).arm == "holdout"
            assert other.recall("heat a cup", episode_id=live).cases


def test_another_process_draws_the_same_arms(memory: CascadeMemory):
    script = (
        "import json; from cascade_memory.cycle.select import Exposure;"
        "print(json.dumps([Exposure(holdout=0.5).arm_of(f'run {i}') for i in range(50)]))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(out) == [memory.recall("q", episode_id=f"run {i}").arm for i in range(50)]


def test_about_the_share_that_was_asked_for_is_held_out():
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(holdout=0.2)) as memory:
        arms = [memory.recall("q").arm for _ in range(400)]
    assert 50 <= arms.count("holdout") <= 112  # four standard deviations


def test_a_search_is_never_held_out(memory: CascadeMemory):
    assert all(memory.cases.search("heat a cup").cases for _ in range(20))


def test_its_success_becomes_a_case_and_teaches_what_happens_without_one(memory: CascadeMemory):
    policy = state_of(memory).policy
    before = policy.value.predict(CONTEXT_PRIOR).baseline
    case_id = memory.reward(memory.recall("heat a cup", episode_id=_held_out()).episode_id, 1.0, solution="use the stove")
    assert memory.cases.get(str(case_id)).solution == "use the stove"
    (lesson,) = engine_of(memory).parts.ledger.lessons.history(1, 10)
    assert not lesson.shown
    assert policy.value.predict(CONTEXT_PRIOR).baseline > before
    assert policy.rewards == 1
    known = memory.cases.search("heat the cup", k=2).cases
    stored = engine_of(memory).parts.ledger.cases.records(1)
    assert len(known) == 2
    assert stored.shown.sum() == stored.succeeded.sum() == 0  # no case gets the credit


@pytest.mark.parametrize("name", ["holdout", "explore"])
@pytest.mark.parametrize("value", [1.0, -0.1, float("nan"), "a", True])
def test_what_is_no_share_is_refused(name, value):
    with pytest.raises(InvalidInput, match=f"{name} must be a number from 0 to below 1"):
        Ranking(**{name: value})


def test_arms_travel_with_an_export(memory: CascadeMemory, tmp_path):
    memory.reward(memory.recall("heat a cup", episode_id=_held_out()).episode_id, 0.0)
    memory.data.export(tmp_path / "all.jsonl", progress=False)
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    with CascadeMemory(embedder="hashing") as copy:
        copy.data.import_(lines, progress=False)
        assert copy.episodes.get(_held_out()).arm == "holdout"  # type: ignore[union-attr]
    older = [json.dumps({key: value for key, value in json.loads(line).items() if key != "holdout"}) for line in lines]
    with CascadeMemory(embedder="hashing") as copy:
        copy.data.import_(older, progress=False)
        assert copy.episodes.get(_held_out()).arm == "holdout"  # type: ignore[union-attr]
