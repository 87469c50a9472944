"""Caps on the rewards of one actor: what is beyond is stored, teaches nothing, and raises an alarm."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest
from inside import engine_of

from cascade_memory import CascadeMemory, Ranking, Trust
from cascade_memory.errors import InvalidInput


def rewarded(memory: CascadeMemory, count: int, *, source: str = "user", actor: str | None = "eve", **options: object) -> None:
    for number in range(count):
        recall = memory.acting(actor=actor).recall(f"task {number} of {actor}")
        memory.acting(actor=actor).reward(
            recall.episode_id, 1.0, solution=f"solution {number} of {actor}", source=source, **options
        )  # type: ignore[arg-type]


@pytest.fixture
def memory():
    with CascadeMemory(embedder="hashing", learn="inline", trust=Trust(reward_caps={"user": 3})) as memory:
        yield memory


def test_what_is_beyond_the_cap_is_stored_and_teaches_nothing(memory):
    rewarded(memory, 5)
    counted = memory.stats()
    assert (counted.cases, counted.rewards, counted.unkept["capped"]) == (3, 5, 2)
    assert "2 beyond reward_caps: they teach nothing either" in str(counted)
    assert memory.recall("task 1").explain().rewards == 3
    last = memory.recall("task 4 of eve").cases
    assert "solution 4 of eve" not in [case.solution for case in last]


def test_failures_beyond_it_count_against_no_case(memory):
    case_id = memory.add("open the door", "use the key")
    for _ in range(6):
        recall = memory.acting(actor="eve").recall("open the door")
        memory.acting(actor="eve").reward(recall.episode_id, 0.0, source="user")
    assert memory.cases.get(case_id).shown == memory.stats().rewards - memory.stats().unkept["capped"] == 3
    memory.forget(episode_id=recall.episode_id)  # it takes back what was counted, and this one was not
    assert memory.cases.get(case_id).shown == 3


def test_others_and_other_sources_have_a_cap_of_their_own(memory):
    rewarded(memory, 5, actor="eve")
    rewarded(memory, 3, actor="ann")
    rewarded(memory, 5, actor="eve", source="host")
    rewarded(memory, 5, actor=None)
    assert memory.stats().unkept["capped"] == 2


def test_names_are_compared_letter_by_letter_as_the_documentation_says(memory):
    """Whether accounts whose names look alike are one person, only the host can know."""
    names = ["eve", "Eve", "EVE", "\u0435ve", "e\u03bde", "\uff45ve", "\U0001d41eve"]  # Cyrillic, Greek, wide, bold
    for name in names:
        rewarded(memory, 4, actor=name)
    assert memory.stats().unkept["capped"] == len(names)
    for name in (" eve", "eve\u200b", "e\u00adve", "eve\u202e", "e\u0301ve", "eve\n", "eve\u2028"):
        with pytest.raises(InvalidInput):
            rewarded(memory, 1, actor=name)
    memory.sources.quarantine("eve")
    assert {case.actor for case in memory.cases.all() if case.hidden} == {"eve"}
    assert memory.forget(by_actor="eve").cases == 3


def test_whoever_asked_is_not_taken_for_the_one_who_reports(memory):
    """Who reports must be named, as docs/rewards.md says; what is undone goes by whoever asked where nobody was."""
    for number in range(5):
        recall = memory.acting(actor="eve").recall(f"task {number}")
        memory.reward(recall.episode_id, 1.0, solution=f"solution {number}", source="user")
    assert (memory.stats().cases, memory.stats().unkept["capped"]) == (5, 0)
    assert memory.health().alarms == ()
    assert memory.forget(by_actor="eve").cases == 5


def test_another_namespace_counts_for_itself(memory):
    rewarded(memory, 3)
    with memory.acting(namespace="theirs").episode("q") as episode:
        memory.acting(actor="eve", namespace="theirs").reward(episode.id, 1.0, solution="s", source="user")
    assert memory.acting(namespace="theirs").stats().unkept["capped"] == 0


def test_after_an_hour_there_is_room_again(memory, monkeypatch):
    rewarded(memory, 4)
    later = time.time() + 3_601.0
    monkeypatch.setattr(time, "time", lambda: later)
    rewarded(memory, 1)
    assert memory.stats().unkept["capped"] == 1


def test_the_same_report_again_changes_nothing_and_a_person_may_replace_it(memory):
    rewarded(memory, 4)
    last = next(iter(memory.episodes.all(newest_first=True)))
    for _ in range(3):
        memory.acting(actor="eve").reward(last.id, 1.0, source="user")
    assert memory.stats().rewards == 4
    case_id = memory.acting(actor="ann").reward(last.id, 1.0, source="human")
    assert memory.cases.get(case_id).solution == "solution 3 of eve"
    assert memory.stats().unkept["capped"] == 0


def test_processes_count_together(tmp_path: Path):
    options = {"embedder": "hashing", "learn": "inline", "trust": Trust(reward_caps={"user": 3})}
    for _ in range(3):
        with CascadeMemory(tmp_path / "memory", **options) as memory:
            rewarded(memory, 2)
            counted = memory.stats().unkept["capped"]
    assert counted == 3


def test_alarms_are_raised_and_logged_once_and_without_a_word_of_a_task(caplog):
    caplog.set_level(logging.INFO)
    with CascadeMemory(embedder="hashing", learn="inline", trust=Trust(reward_caps={"user": 6})) as memory:
        rewarded(memory, 9)
        health = memory.health()
    assert health.ok
    said = [
        "actor 'eve' in namespace 'default', source 'user': more than 6 rewards within an hour; those beyond teach nothing",
        "actor 'eve' in namespace 'default', source 'user': a burst of 5 rewards or more within a minute",
    ]
    assert sorted(health.alarms) == sorted(said)
    assert all(text in str(health) for text in said)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert sorted(warnings) == sorted(said)
    assert "task 1" not in caplog.text
    assert "solution 1" not in caplog.text


def test_alarms_end_after_an_hour_and_are_never_many():
    from cascade_memory.engine.alarms import Alarms

    now = [0.0]
    alarms = Alarms(clock=lambda: now[0])
    for number in range(300):
        alarms.sound(f"alarm {number}")
    assert alarms.current() == tuple(f"alarm {number}" for number in range(200, 300))
    now[0] = 3_601.0
    assert alarms.current() == ()


def test_by_default_users_and_agents_are_capped_and_what_the_host_says_is_not(tmp_path: Path):
    with CascadeMemory(embedder="hashing", learn="off") as memory:
        for number in range(101):
            episode_id = memory.recall(f"task {number}").episode_id
            memory.acting(actor="eve").reward(episode_id, 0.0, source="user")
        assert memory.stats().unkept["capped"] == 1


def test_the_cap_may_be_nothing_and_no_cap_at_all():
    with CascadeMemory(embedder="hashing", learn="inline", trust=Trust(reward_caps={"user": 0})) as memory:
        rewarded(memory, 1)
        assert (memory.stats().cases, memory.stats().unkept["capped"]) == (0, 1)
    with CascadeMemory(embedder="hashing", learn="off", trust=Trust(reward_caps={"user": None})) as memory:
        for number in range(105):
            memory.acting(actor="eve").reward(memory.recall(f"task {number}").episode_id, 0.0, source="user")
        assert memory.stats().unkept["capped"] == 0


def test_a_source_that_is_not_named_keeps_its_cap():
    with CascadeMemory(embedder="hashing", learn="off", trust=Trust(reward_caps={"agent": 3})) as memory:
        for number in range(101):
            memory.acting(actor="eve").reward(memory.recall(f"task {number}").episode_id, 0.0, source="user")
        assert memory.stats().unkept["capped"] == 1


@pytest.mark.parametrize("caps", [100, ["user"], {"nobody": 1}, {"user": -1}, {"user": 1.5}, {"user": True}])
def test_other_caps_are_refused(caps):
    with pytest.raises(InvalidInput, match=r"reward_caps|cap of"):
        CascadeMemory(embedder="hashing", trust=Trust(reward_caps=caps))


def test_counting_uses_its_index_and_nobody_without_an_actor_counts(memory):
    """However much an actor has reported beyond the cap, counting reads no more than the cap."""
    from cascade_memory.ledger.before_settling import COUNTED

    rewarded(memory, 3)
    with engine_of(memory).parts.ledger.connections.read() as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {COUNTED}", (0.0, 1, "eve", "user", 0.0)).fetchall()
    assert any("outcome_counted" in str(step) for step in plan)


def test_the_word_of_some_sources_teaches_less():
    """The same failures, told by different sources, count against a case the less their word weighs."""
    predicted: dict[str, float] = {}
    records: dict[str, float] = {}
    for source in ("human", "judge", "user"):
        with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False)) as memory:
            memory.add([("open the door", "use the key"), ("paint a wall", "use a brush")])
            for _ in range(3):
                memory.recall("open the door").reward(0.0, source=source)
            recall = memory.recall("open the door")
            predicted[source], records[source] = recall.cases[0].utility, recall.explain().candidates[0].record
            assert recall.explain().rewards == 3
    assert predicted["human"] < predicted["judge"] < predicted["user"]
    assert records["human"] < records["judge"] < records["user"] < 0.0


def test_what_is_beyond_the_cap_takes_nothing_back(tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing", trust=Trust(reward_caps={"user": 1})) as memory:
        episode = memory.recall("cool a mug").episode_id
        assert memory.reward(episode, 1.0, solution="fridge")
        memory.acting(actor="u").reward(memory.recall("another").episode_id, 1.0, solution="one", source="user")
        memory.acting(actor="u").reward(episode, 0.0, source="user", overwrite=True)
        assert {case.solution for case in memory.cases.all()} == {"fridge", "one"}
