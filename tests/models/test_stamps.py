"""The name of the model that answered last is stamped on an episode when it ends, and nothing else of it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cascade_memory import CascadeMemory
from cascade_memory.errors import UnknownEpisode


def only_case(memory: CascadeMemory) -> Any:
    (case,) = memory.cases.all()
    return case


@pytest.fixture
def memory() -> CascadeMemory:
    return CascadeMemory(embedder="hashing", learn="inline")


def answered(memory: CascadeMemory, *names: object, **options: Any) -> str:
    episode = memory.recall("cool some mug", **options).episode_id
    for name in names:
        memory.models.answered(episode, name)
    return episode


def test_the_model_that_answered_last_is_stamped_on_the_episode_and_its_case(memory: CascadeMemory):
    episode = answered(memory, "planner-1", "writer-2", metadata={"user": "ann"})
    memory.reward(episode, 1.0, solution="fridge")
    assert only_case(memory).metadata == {"user": "ann", "model": "writer-2"}
    assert memory.episodes.get(episode).metadata == {"user": "ann", "model": "writer-2"}


def test_it_is_shown_and_filtered_by(memory: CascadeMemory):
    memory.reward(answered(memory, "writer-2"), 1.0, solution="fridge")
    memory.reward(answered(memory, "planner-1"), 1.0, solution="freezer")
    found = memory.recall("cool some mug", where={"model": "writer-2"}, k=5).cases
    assert [(one.solution, one.metadata) for one in found] == [("fridge", {"model": "writer-2"})]
    assert [one.solution for one in memory.cases.all(where={"model": {"$ne": "writer-2"}})] == ["freezer"]


def test_a_field_that_the_user_has_set_stays(memory: CascadeMemory):
    memory.reward(answered(memory, "writer-2", metadata={"model": "Civic"}), 1.0, solution="fridge")
    assert only_case(memory).metadata == {"model": "Civic"}


def test_a_field_that_comes_with_the_reward_wins(memory: CascadeMemory):
    memory.reward(answered(memory, "writer-2"), 1.0, solution="fridge", metadata={"model": "mine"})
    assert only_case(memory).metadata == {"model": "mine"}


@pytest.mark.parametrize(
    "name",
    [None, "", "  ", "unknown", 5, ["gpt"], "x" * 256 + "y", "gpt\n5", "gpt\x1b[31m", "gpt\u200b5", "gpt\u202e5", "gpt\ud800"],
)
def test_what_is_no_name_is_not_stamped(memory: CascadeMemory, name: object):
    memory.reward(answered(memory, name), 1.0, solution="fridge")
    assert only_case(memory).metadata == {}
    assert memory.health().ok


def test_a_name_that_a_stream_has_repeated_is_stamped_once(memory: CascadeMemory):
    memory.reward(answered(memory, "gpt-5.2" * 40), 1.0, solution="fridge")
    assert only_case(memory).metadata == {"model": "gpt-5.2"}


def test_a_secret_in_a_name_becomes_a_placeholder(memory: CascadeMemory):
    secret = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ" * 2
    memory.reward(answered(memory, f"https://host/v1?api_key={secret}"), 1.0, solution="fridge")
    assert secret not in repr(only_case(memory).metadata)


def test_a_run_that_nobody_has_judged_keeps_the_name_for_a_later_reward(tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing") as memory:
        episode = answered(memory, "writer-2")
        memory.end(episode, solution="fridge")
    with CascadeMemory(tmp_path, embedder="hashing") as memory:
        memory.reward(episode, 1.0)
        assert only_case(memory).metadata == {"model": "writer-2"}


def test_an_interrupted_run_is_named_by_the_model_that_ends_it(memory: CascadeMemory):
    episode = answered(memory, "planner-1")
    memory.episodes.finish(episode, status="interrupted")
    memory.models.answered(episode, "writer-2")
    memory.reward(episode, 1.0, solution="fridge")
    assert only_case(memory).metadata == {"model": "writer-2"}


def test_a_person_who_confirms_what_was_seen_is_not_told_that_it_has_changed(memory: CascadeMemory):
    episode = answered(memory, "planner-1")
    memory.end(episode, solution="fridge")
    seen = memory.episodes.get(episode)
    assert seen is not None
    memory.models.answered(episode, "writer-2")
    memory.reward(episode, 1.0, source="human", confirms=seen.fingerprint)
    assert only_case(memory).metadata == {"model": "planner-1"}


def test_an_unknown_episode_is_no_error(memory: CascadeMemory):
    memory.models.answered("nobody's", "writer-2")
    with pytest.raises(UnknownEpisode):
        memory.reward("nobody's", 1.0)
    assert memory.health().ok


def test_a_name_that_cannot_be_stored_does_not_keep_an_episode_from_ending(
    memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch
):
    # A name that no field of metadata may have: the door refuses it.
    monkeypatch.setattr("cascade_memory.capabilities.models.engine_part.MODEL", "cascade_model")
    memory.reward(answered(memory, "writer-2"), 1.0, solution="fridge")
    assert only_case(memory).metadata == {}
    assert memory.health().failures == {"models": 1}


def test_only_the_latest_runs_are_remembered(memory: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cascade_memory.capabilities.models.engine_part.MOST", 2)
    episodes = [answered(memory, "writer-2") for _ in range(3)]
    for number, episode in enumerate(episodes):
        memory.reward(episode, 1.0, solution=f"fridge {number}")
    assert [one.metadata for one in memory.cases.all()] == [{}, {"model": "writer-2"}, {"model": "writer-2"}]


def test_forgetting_by_model_leaves_nothing_of_it(memory: CascadeMemory):
    memory.reward(answered(memory, "writer-2"), 1.0, solution="fridge")
    memory.forget(where={"model": "writer-2"}, purge=True)
    assert memory.models.all() == []
    assert len(memory) == 0
