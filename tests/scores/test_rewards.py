"""What scores do to the outcomes of episodes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scored import opened, recalled, score

from cascade_memory import CascadeMemory
from cascade_memory.errors import InvalidInput


@pytest.fixture
def memory() -> CascadeMemory:
    return opened()


def reward(memory: CascadeMemory, episode: str) -> tuple[float | None, str | None]:
    found = memory.episodes.get(episode)
    assert found is not None
    return found.reward, found.source


def test_a_score_becomes_a_reward_and_its_answer_a_case(memory: CascadeMemory):
    episode = recalled(memory, 1)
    collected = memory.scores.collect([score(1)])
    assert (collected.scores, collected.found, collected.rewarded) == (1, {"judge": 1}, 1)
    assert reward(memory, episode) == (1.0, "judge")
    (case,) = memory.cases.all()
    assert (case.solution, case.channel) == ("put it into the fridge", "scores")
    again = memory.scores.collect([score(1)])
    assert (again.rewarded, str(again).splitlines()[-1]) == (0, "nothing was to be changed")
    assert len(memory.episodes.outcomes(episode_id=episode)) == 1


def test_a_score_that_changes_replaces_its_outcome(memory: CascadeMemory):
    episode = recalled(memory, 1)
    memory.scores.collect([score(1)])
    memory.scores.collect([score(1, 0.0, at=1.7e9 + 1)])
    assert reward(memory, episode) == (0.0, "judge")
    assert list(memory.cases.all()) == []
    collected = memory.scores.collect([score(1, 1.0)])
    assert collected.older == 1
    assert reward(memory, episode) == (0.0, "judge")


def test_a_deleted_score_is_withdrawn_with_what_it_taught(memory: CascadeMemory):
    episode = recalled(memory, 1)
    memory.scores.collect([score(1)])
    gone = memory.scores.collect([replace(score(1), deleted=True)])
    assert gone.withdrawn == 1
    found = memory.episodes.get(episode)
    assert found is not None
    assert (found.status, found.reward, found.answer) == ("open", None, "put it into the fridge")
    assert list(memory.cases.all()) == []
    assert [one.withdrawn_at is None for one in memory.episodes.outcomes(episode_id=episode)] == [False]
    memory.scores.collect([score(1, at=1.7e9 + 5)])
    assert [case.solution for case in memory.cases.all()] == ["put it into the fridge"]


def test_a_deleted_score_needs_no_trace(memory: CascadeMemory):
    episode = recalled(memory, 1)
    memory.scores.collect([score(1)])
    memory.scores.collect([replace(score(1), deleted=True, trace_id=None, at=1.7e9 + 1)])
    assert reward(memory, episode) == (None, None)


def test_a_solution_that_came_with_a_direct_reward_is_there_again(memory: CascadeMemory):
    episode = recalled(memory, 1, solution=None)
    memory.reward(episode, 1.0, solution="freezer", source="user")
    memory.scores.collect([score(1, 0.0, judge="human")])
    assert reward(memory, episode) == (0.0, "human")
    assert list(memory.cases.all()) == []
    memory.scores.collect([replace(score(1, 0.0, judge="human"), deleted=True)])
    assert reward(memory, episode) == (1.0, "user")
    assert [case.solution for case in memory.cases.all()] == ["freezer"]


def test_the_most_trusted_source_decides_by_its_weighted_mean(memory: CascadeMemory):
    episode = recalled(memory, 1)
    scores = [
        score(1, 1.0, id="a", name="correctness", judge="judge"),
        score(1, 0.0, id="b", name="tone", judge="judge"),
        score(1, 0.0, id="c", name="length", judge="judge"),
    ]
    memory.scores.collect(scores, weights={"correctness": 3.0, "tone": 1.0})
    assert reward(memory, episode) == (0.75, "judge")
    for judge, source in (("code", "env"), ("human", "human")):
        memory.scores.collect([score(1, 0.5, id=judge, name="tone", judge=judge)], weights={"tone": 1.0})
        assert reward(memory, episode) == (0.5, source)


def test_an_agents_own_score_teaches_nothing(memory: CascadeMemory):
    episode = recalled(memory, 1)
    memory.scores.collect([score(1, 1.0, judge="agent")])
    assert reward(memory, episode) == (1.0, "agent")
    assert list(memory.cases.all()) == []
    memory.scores.collect([score(1, 1.0, id="2", judge="judge")])
    assert [case.solution for case in memory.cases.all()] == ["put it into the fridge"]
    memory.scores.collect([replace(score(1, id="2"), deleted=True)])
    assert reward(memory, episode) == (1.0, "agent")


@pytest.mark.parametrize(
    ("direct", "judge", "stays"),
    [
        *(("human", "human", True), ("human", "judge", True), ("host", "judge", True), ("env", "code", True)),
        *(("host", "human", False), ("user", "judge", False), ("judge", "code", False), ("agent", "judge", False)),
    ],
)
def test_a_direct_reward_stays_unless_a_more_trusted_source_says_otherwise(
    memory: CascadeMemory, direct: str, judge: str, stays: bool
):
    episode = recalled(memory, 1)
    memory.reward(episode, 1.0, source=direct)
    memory.scores.collect([score(1, 0.0, judge=judge)])
    assert (reward(memory, episode) == (1.0, direct)) is stays
    memory.scores.collect([replace(score(1, 0.0, judge=judge), deleted=True)])
    assert reward(memory, episode) == (1.0, direct)


def test_a_persons_verdict_in_the_review_stays(memory: CascadeMemory):
    episode = recalled(memory, 1)
    found = memory.episodes.get(episode)
    assert found is not None
    memory.acting(actor="ann").review.reject(episode, seen=found.fingerprint)
    memory.scores.collect([score(1, 1.0, judge="judge"), score(1, 1.0, id="2", judge="human")])
    assert reward(memory, episode) == (0.0, "human")


def test_a_verdict_on_an_episode_that_expired_is_told(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    recalled(memory, 1, solution=None)
    monkeypatch.setattr("time.time", lambda: 3e9)
    assert memory.episodes.expire(older_than=60.0) == 1
    collected = memory.scores.collect([score(1)])
    assert (collected.rewarded, collected.refused) == (0, 0)
    assert "is expired and can no longer be rewarded" in collected.why[0]


def test_scores_are_undone_as_any_source(memory: CascadeMemory):
    for number in range(3):
        recalled(memory, number)
    memory.scores.collect(score(number, by="eve" if number else "ann", judge="human") for number in range(3))
    assert len(memory) == 3
    memory.forget(by_actor="eve")
    assert [one.by for one in memory.scores.known("mine")] == ["ann"]
    assert len(memory) == 1
    memory.forget(by_channel="scores")
    assert len(memory) == 0


@pytest.mark.parametrize("weights", [[1], {"a": -1}, {"a": float("nan")}, {1: 1.0}, {"a": "1"}])
def test_weights_must_be_numbers(memory: CascadeMemory, weights: object):
    with pytest.raises(InvalidInput, match="weights"):
        memory.scores.collect([], weights=weights)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="labels"):
        memory.scores.collect([], labels={"a": 2.0})


def test_a_score_stays_with_its_episode_when_its_trace_gets_a_second_one(memory: CascadeMemory):
    episode = recalled(memory, 1)
    memory.scores.collect([score(1)])
    assert recalled(memory, 1) != episode
    assert memory.scores.collect([score(1, 0.0, at=1.7e9 + 1)]).rewarded == 1
    assert reward(memory, episode) == (0.0, "judge")
    memory.scores.collect([score(1, 0.0, at=1.7e9 + 2, deleted=True)])
    assert reward(memory, episode) == (None, None)


@pytest.mark.parametrize("value", [1.0, 0.0])
def test_a_direct_reward_after_the_score_stays_when_the_score_goes(memory: CascadeMemory, value: float):
    episode = recalled(memory, 1)
    memory.scores.collect([score(1, 1.0)])
    memory.reward(episode, value, source="human")
    memory.scores.collect([score(1, 1.0, at=1.7e9 + 1, deleted=True)])
    assert reward(memory, episode) == (value, "human")


def test_a_less_trusted_direct_reward_does_not_replace_a_score(memory: CascadeMemory):
    episode = recalled(memory, 1)
    memory.scores.collect([score(1, 1.0, judge="human")])
    memory.reward(episode, 1.0, source="judge")
    assert reward(memory, episode) == (1.0, "human")


def test_what_is_forgotten_by_channel_does_not_come_back_with_another_score(memory: CascadeMemory):
    episode = recalled(memory, 1)
    memory.scores.collect([score(1, 1.0, id="m", judge="human", by="mallory")])
    memory.forget(by_channel="scores")
    assert memory.scores.of(episode) == []
    memory.scores.collect([score(1, 0.0, id="j")])
    assert reward(memory, episode) == (0.0, "judge")


def test_a_collector_that_returns_something_else_keeps_what_came_before(memory: CascadeMemory):
    episode = recalled(memory, 1)
    with pytest.raises(InvalidInput, match="objects of the class Score"):
        memory.scores.collect(iter([score(1), "no score"]))  # type: ignore[list-item]
    assert reward(memory, episode) == (1.0, "judge")


def test_values_without_a_meaning_are_counted_in_bounded_space(memory: CascadeMemory):
    recalled(memory, 1)
    found = memory.scores.collect([score(1, 10**5_000, id="huge"), *(score(1, 1_000 + n, id=f"n{n}") for n in range(1_100))])
    assert len(found.unnumbered) <= 1_001
    assert sum(found.unnumbered.values()) == 1_101
