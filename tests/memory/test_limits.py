"""A namespace may be kept small: what taught least goes first, what is too old goes anyway."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, Ranker, Retention
from cascade_memory.bandit.case_worth import worth
from cascade_memory.bandit.similarity import UniformPolicy
from cascade_memory.encoders import CosineEncoder
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger import recalls
from cascade_memory.ports import Feedback


def _solve(memory: CascadeMemory, query: str, solution: str, value: float = 1.0) -> str | None:
    return memory.reward(memory.recall(query).episode_id, value, solution=solution)


@pytest.mark.slow
def test_a_full_namespace_makes_room_for_a_new_case(on_disk):
    memory = on_disk(retention=Retention(max_cases=40))
    for i in range(100):
        case = _solve(memory, f"task {i} of kind {i % 7}", f"solution {i % 7}")
        assert memory.stats().cases <= 40
        assert case is not None
    assert memory.recall("task 99 of kind 1").cases[0].solution == "solution 1"
    memory.sync()
    assert all(check.ok for check in memory.data.examine())
    assert memory.stats().rewards == 100  # what happened stays written down


def test_the_limit_of_one_namespace_is_not_that_of_another(ram: CascadeMemory):
    small = CascadeMemory(embedder="hashing", learn="inline", retention=Retention(max_cases=5))
    with small:
        for name in ("a", "b"):
            for i in range(12):
                small.acting(namespace=name).add(f"task {i}", f"solution {i}")
        assert [small.acting(namespace=name).stats().cases for name in ("a", "b")] == [5, 5]


def test_the_log_of_searches_keeps_the_last_ones_only(ram: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recalls, "SEARCHES_KEPT", 10)
    for i in range(30):
        ram.cases.search(f"looking for {i}")
        ram.recall(f"task {i}")
    assert ram.stats().recalls == 30 + 10
    assert ram.stats().open == 30


def test_redundant_cases_go_before_the_only_one_of_their_kind():
    with CascadeMemory(embedder="hashing", learn="inline", retention=Retention(max_cases=20)) as memory:
        _solve(memory, "defragment the warp drive", "warp")
        for i in range(60):
            _solve(memory, f"please reset the password of user {i}", "reset it")
        assert memory.cases.search("defragment the warp drive").cases[0].solution == "warp"


def test_a_case_that_is_always_wrong_goes_before_one_that_is_right():
    keys = np.array([1, 2, 3])
    right_twice = (np.array([1, 2]), np.array([0.9, 0.9]), np.array([1.0, 0.0]))
    value = worth(keys, np.ones(3), np.zeros(3), np.zeros(3), [right_twice, right_twice])
    assert np.argsort(value).tolist() == [1, 2, 0]  # the wrong one, the one nobody asked about, the right one


def test_outcomes_in_which_no_solution_agrees_say_nothing_about_the_cases():
    keys = np.array([1, 2])
    told_nothing = (np.array([1]), np.array([0.9]), np.array([0.0]))
    value = worth(keys, np.ones(2), np.zeros(2), np.zeros(2), [told_nothing] * 9)
    assert value[0] == value[1]


def test_what_was_not_verified_for_too_long_is_not_recalled_and_goes(on_disk, caplog: pytest.LogCaptureFixture):
    memory = on_disk(retention=Retention(ttl=timedelta(days=1)))
    memory.add([("old task", "old"), ("task verified again", "renewed"), ("new task", "new")])
    ledger = engine_of(memory).parts.ledger
    with ledger.connections.write(durable=True) as connection:
        old = (
            "UPDATE cases SET verified_at = verified_at - 90000, verified_run = verified_run - 90000 WHERE query <> 'new task'"
        )
        connection.execute(old)
    memory.add("task verified again", "renewed")
    assert {case.solution for case in memory.cases.search("task", k=3).cases} == {"renewed", "new"}
    state_of(memory).next_look = 0.0
    with caplog.at_level("INFO", "cascade_memory"):
        memory.recall("task")
    assert memory.stats().cases == 2
    assert "1 cases of namespace 'default' expired" in caplog.text
    assert [case.query for case in memory.cases.expired()] == ["old task"]


def test_fresh_cases_are_found_behind_many_old_ones(on_disk):
    memory = on_disk(retention=Retention(ttl=timedelta(days=1)))
    memory.add([(f"reset the password of user {i}", f"old {i}") for i in range(60)])
    ledger = engine_of(memory).parts.ledger
    with ledger.connections.write(durable=True) as connection:
        connection.execute("UPDATE cases SET verified_at = ?", (time.time() - 90_000,))
    memory.add("reset a password", "fresh")
    assert [case.solution for case in memory.cases.search("reset the password of user 3", k=3).cases] == ["fresh"]


def test_two_handles_cannot_have_different_limits(on_disk):
    on_disk(retention=Retention(max_cases=1000))
    with pytest.raises(InvalidInput, match="open in this process with max_cases=1000 and ttl=None"):
        on_disk(retention=Retention(max_cases=10))
    assert on_disk().stats().cases == 0  # no word about limits: those of the folder


def test_a_memory_with_limits_fails_open_as_well(on_disk, monkeypatch):
    memory = on_disk(retention=Retention(max_cases=10))

    def broken(*_: object, **__: object) -> object:
        raise OSError("no more files")

    monkeypatch.setattr(engine_of(memory).parts.ledger, "scan", broken)
    with pytest.warns(RuntimeWarning, match="going on without cases"):
        assert memory.acting(namespace="new").recall("q").cases == ()


def test_limits_that_make_no_sense_are_refused(tmp_path):
    for options in ({"max_cases": 0}, {"max_cases": 1.5}, {"ttl": -1}, {"ttl": "a day"}):
        with pytest.raises(InvalidInput, match=r"max_cases|ttl"):
            Retention(**options)


@pytest.mark.slow
def test_recalls_that_nobody_learns_from_any_more_are_shrunk_and_change_nothing(on_disk, monkeypatch):
    monkeypatch.setattr("cascade_memory.learning.learner.WINDOW", 100)
    memory = on_disk()
    episodes = []
    for i in range(300):
        recall = memory.recall(f"task {i} of kind {i % 7}")
        episodes.append((recall.episode_id, [case.id for case in recall.cases]))
        memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"solution {i % 7}", metadata={"i": i})
    ledger = engine_of(memory).parts.ledger
    with ledger.connections.read() as connection:
        sizes = [row[0] for row in connection.execute("SELECT length(features) FROM recall ORDER BY key")]
    assert not any(sizes[:150])
    assert all(sizes[200:])
    for episode_id, shown in episodes[:100]:
        assert list(memory.episodes.get(episode_id).cases) == shown
    # A late change of mind still works: the episode's vector is made anew.
    assert memory.reward(episodes[0][0], 1.0, solution="at last", overwrite=True)
    assert memory.cases.search("task 0 of kind 0").cases[0].solution == "at last"
    state = state_of(memory).policy.rewards
    memory.close()
    assert state_of(on_disk()).policy.rewards == state


def test_a_discarded_episode_keeps_no_candidates(on_disk):
    memory = on_disk()
    memory.add([(f"task {i}", "s") for i in range(40)])
    episode = memory.recall("task 3").episode_id
    memory.episodes.discard(episode)
    with engine_of(memory).parts.ledger.connections.read() as connection:
        (size,) = connection.execute("SELECT sum(length(features) + length(context)) FROM recall").fetchone()
    assert size == 0
    assert len(memory.episodes.get(episode).cases) <= 1


def test_room_is_made_before_anything_else_is_learned():
    may_learn, learning = threading.Semaphore(0), threading.Event()

    class Slow(UniformPolicy):
        def update(self, feedback: Sequence[Feedback]) -> None:
            learning.set()
            assert may_learn.acquire(timeout=30)
            super().update(feedback)

    slow = Ranker(name="slow", encoder=lambda dimension, lookup: CosineEncoder(), policy=Slow)
    with CascadeMemory(embedder="hashing", ranker=slow, retention=Retention(max_cases=5)) as memory:
        _solve(memory, "the first task", "the first solution")
        assert learning.wait(30)
        learning.clear()
        for i in range(12):  # while the first reward is learned
            memory.acting(namespace="other").add(f"task {i}", f"solution {i}")
        other = memory.acting(namespace="other").recall("the second task")
        memory.acting(namespace="other").reward(other.episode_id, 1.0)
        may_learn.release()
        assert learning.wait(30)  # the second reward is being learned now
        assert memory.acting(namespace="other").stats().cases == 5
        may_learn.release(10)
