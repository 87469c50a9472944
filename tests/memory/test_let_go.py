"""Namespaces that nobody used lately are let go: nothing of what they learned or should forget is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from inside import engine_of, predictions_of, state_of

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.engine.namespace_state import NamespaceState

QUERY = "which answer is right for topic 1?"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all but two namespaces go."""
    monkeypatch.setattr("cascade_memory.engine.follower.MOST_STATES", 2)


def _play(memory: CascadeMemory, name: str, episodes: int) -> None:
    memory.acting(namespace=name).add([(f"ticket {i} of {name} about topic {i % 3}", f"answer {i % 3}") for i in range(5)])
    for i in range(episodes):
        recall = memory.acting(namespace=name).recall(f"question {i} of {name} about topic {i % 3}")
        memory.acting(namespace=name).reward(recall.episode_id, float(i % 2), solution=f"answer {i % 3}" if i % 2 else None)


def _loaded(memory: CascadeMemory) -> list[str]:
    return [name for name in memory.data.namespaces() if engine_of(memory).loaded_state(name) is not None]


def _snapshots(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("snapshots/policy-*"))


@pytest.mark.parametrize("episodes", [5, 40])  # too few for a snapshot, and enough
def test_what_was_learned_is_there_when_a_namespace_comes_back(tmp_path: Path, few: None, episodes: int):
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        _play(memory, "first", episodes)
        state, before = state_of(memory, "first"), predictions_of(memory, "first", QUERY)
        for name in ("second", "third"):
            _play(memory, name, 1)
        assert _loaded(memory) == ["second", "third"]
        assert bool(_snapshots(tmp_path)) == (episodes == 40)
        after = predictions_of(memory, "first", QUERY)
        assert state_of(memory, "first") is not state
        np.testing.assert_allclose(after, before, atol=1e-6)
        assert memory.acting(namespace="first").stats().policy_version == state.policy.version


@pytest.mark.slow
def test_a_namespace_that_was_let_go_goes_on_as_if_it_never_was(few: None, monkeypatch: pytest.MonkeyPatch):
    found = {}
    for most in (2, 100):
        monkeypatch.setattr("cascade_memory.engine.follower.MOST_STATES", most)
        with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False)) as memory:
            names = [f"tenant-{i}" for i in range(5)]
            for name in names * 3:
                _play(memory, name, 9)
            found[most] = [predictions_of(memory, name, QUERY) for name in names]
            assert memory.health().failures == {}
    for with_few, with_all in zip(found[2], found[100], strict=True):
        assert with_few.shape == with_all.shape
        np.testing.assert_allclose(with_few, with_all, atol=1e-6)


def test_a_reward_that_comes_after_a_namespace_was_let_go_is_learned(few: None):
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        memory.acting(namespace="first").add("a printer jams", "pull the tray")
        episode = memory.acting(namespace="first").recall("the printer jams").episode_id
        for name in ("second", "third"):
            memory.acting(namespace=name).recall("x")
        assert "first" not in _loaded(memory)
        memory.acting(namespace="first").reward(episode, 1.0, solution="pull the tray")
        assert state_of(memory, "first").policy.rewards == 1
        assert memory.acting(namespace="first").recall("the printer jams").cases


def test_forgetting_reaches_the_snapshots_of_a_namespace_that_is_not_loaded(tmp_path: Path, few: None):
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        _play(memory, "first", 40)
        number = engine_of(memory).namespace_id("first")
        for name in ("second", "third"):
            memory.acting(namespace=name).recall("x")
        assert "first" not in _loaded(memory)
        assert len(_snapshots(tmp_path)) == 1
        engine_of(memory).parts.ledger.forgetting.forget_namespace(number)  # as another process does it
        engine_of(memory).learn_soon()
        assert "first" not in _loaded(memory)
        assert _snapshots(tmp_path) == []
        assert memory.acting(namespace="first").recall(QUERY).cases == ()
        assert state_of(memory, "first").policy.rewards == 0


def test_a_namespace_with_something_to_learn_is_kept(few: None, monkeypatch: pytest.MonkeyPatch):
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        for name in ("first", "second", "third"):
            memory.acting(namespace=name).add("a printer jams", "pull the tray")
        assert _loaded(memory) == ["second", "third"]
        monkeypatch.setattr(NamespaceState, "busy", property(lambda state: state.name == "second"))
        memory.acting(namespace="fourth").recall("x")
        assert set(_loaded(memory)) == {"second", "fourth"}


def test_large_namespaces_stay_for_a_while(few: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cascade_memory.engine.follower._SMALL", 0)
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        for i in range(5):
            memory.acting(namespace=f"tenant-{i}").add("a printer jams", "pull the tray")
        assert len(_loaded(memory)) == 5
        state_of(memory, "tenant-0").used -= 700.0
        memory.acting(namespace="one more").recall("x")
        assert "one more" in _loaded(memory)


@pytest.mark.slow
def test_closing_saves_no_snapshots_of_many_small_namespaces(tmp_path: Path):
    with CascadeMemory(tmp_path, embedder="hashing", learn="inline") as memory:
        for i in range(20):
            _play(memory, f"tenant-{i}", 2)
        _play(memory, "busy", 40)
    assert len(_snapshots(tmp_path)) == 1
    with CascadeMemory(tmp_path, embedder="hashing") as memory:
        assert state_of(memory, "tenant-3").policy.rewards == 2


def test_a_change_visits_only_the_namespace_that_it_concerns(monkeypatch: pytest.MonkeyPatch):
    with CascadeMemory(embedder="hashing", learn="inline") as memory:
        visited: list[str] = []
        for name in ("first", "second"):
            memory.acting(namespace=name).recall("x")
            state = state_of(memory, name)
            monkeypatch.setattr(
                state, "apply", lambda changes, name=name, apply=state.apply: (visited.append(name), apply(changes))
            )
        memory.acting(namespace="second").add("a printer jams", "pull the tray")
        assert visited == ["second"]


@pytest.mark.slow
def test_threads_work_in_more_namespaces_than_are_kept(few: None):
    names = [f"tenant-{i}" for i in range(6)]
    wrong: list[str] = []
    with CascadeMemory(embedder="hashing") as memory:

        def work(which: int) -> None:
            for turn in range(15):
                name = names[(which + turn) % len(names)]
                query = f"task {which} {turn} of {name}"
                case_id = memory.acting(namespace=name).add(query, f"solution {which} {turn}")
                found = memory.acting(namespace=name).recall(query, k=1)
                if found.error or not any(
                    one.similarity > 0.999 for one in memory.acting(namespace=name).cases.search(query).cases
                ):
                    wrong.append(f"{query}: {found.error}")
                memory.acting(namespace=name).reward(found.episode_id, 1.0, solution=f"solution {which} {turn}")
                if turn % 5 == 4:
                    memory.acting(namespace=name).forget(case_id)
                    if any(one.id == case_id for one in memory.acting(namespace=name).cases.search(query).cases):
                        wrong.append(f"{query} was forgotten")

        threads = [threading.Thread(target=work, args=(which,)) for which in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        memory.sync()
        assert wrong == []
        assert memory.health().failures == {}
        assert (
            sum(state_of(memory, name).policy.rewards for name in names) == memory.stats(everywhere=True).rewards == 48
        )  # 12 forgotten
        for name in names:
            assert state_of(memory, name).index.count == memory.acting(namespace=name).stats().cases
