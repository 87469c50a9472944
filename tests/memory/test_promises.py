"""What a careful user found out by trying: each of these failed once."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.errors import AlreadyRewarded, InvalidInput, StoreCorrupt, UnknownEpisode


def _elsewhere(folder: Path, code: str) -> str:
    script = f"""
import sys
from cascade_memory import CascadeMemory
memory = CascadeMemory(sys.argv[1], embedder="hashing", learn="inline")
{textwrap.dedent(code)}
memory.close()
"""
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- learning ------------------------------------------------------------------------------------------------------------


def test_a_case_that_keeps_failing_is_not_insisted_on(ram: CascadeMemory):
    ram.add("put a hot mug in the desk", "wrong")
    shown = []
    for _ in range(60):
        recall = ram.recall("put a hot mug in the desk, please")
        shown.append(len(recall.cases))
        ram.reward(recall.episode_id, 0.0 if recall.cases else 0.7)
    assert shown[0] == 1
    assert sum(shown[-20:]) <= 4


def test_a_process_that_only_recalls_learns_from_the_others(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        memory.add("task", "s")
        memory.recall("task")
        _elsewhere(
            tmp_path / "m",
            """
            for i in range(20):
                memory.reward(memory.recall(f"task {i}").episode_id, 1.0, solution="s")
            """,
        )
        memory.recall("task")
        assert state_of(memory).policy.rewards == 20


def test_learn_off_learns_nothing_of_the_others_either(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="off") as memory:
        memory.recall("task")
        _elsewhere(tmp_path / "m", 'memory.reward(memory.recall("task").episode_id, 1.0, solution="s")')
        memory.sync()
        assert state_of(memory).policy.rewards == 0
        assert len(memory.recall("task").cases) == 1


def test_an_episode_of_many_recalls_is_one_reward(ram: CascadeMemory):
    ram.add([("a", "1"), ("b", "2")])
    episode = ram.recall("a").episode_id
    for _ in range(4):
        ram.recall("b", episode_id=episode)
    ram.reward(episode, 0.0)
    assert ram.recall("a").explain().rewards == 1


def test_of_several_shown_cases_the_one_that_agrees_is_credited(ram: CascadeMemory):
    from cascade_memory.bandit.credit import credit_matched
    from cascade_memory.ports.policy import Feedback, Slate

    slate = Slate(features=np.eye(3), similarity=np.ones(3), groups=np.arange(3))
    common = {"key": 1, "slate": slate, "chosen": np.array([2, 0, 1]), "context": np.zeros(0), "shown": True, "reward": 1.0}
    assert credit_matched(Feedback(**common, agreement=np.array([0.0, 1.0, 0.0]))).tolist() == [1]
    assert credit_matched(Feedback(**common, agreement=np.array([np.nan, 0.0, 0.0]))).tolist() == [2]
    assert credit_matched(Feedback(**common, agreement=None)).tolist() == [2]


def test_a_matcher_that_raises_costs_no_outcome():
    with CascadeMemory(
        embedder="hashing", learn="inline", ranking=Ranking(matcher=lambda a, b: float(a) == float(b))
    ) as memory:
        memory.add("half of seven", "n/a")
        recall = memory.recall("half of seven")
        assert memory.reward(recall.episode_id, 1.0, solution="3.5") is not None
        assert memory.health().failures == {"matcher": 1}
        assert memory.stats().cases == 2


@pytest.mark.parametrize("before", ["similarity", "random", "light"])
def test_a_folder_may_change_its_ranker(tmp_path: Path, before: str):
    for ranker in (before, "neural-linlogucb", "light"):
        with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline", ranker=ranker) as memory:
            for i in range(5):
                memory.reward(memory.recall(f"task {i}").episode_id, 1.0, solution="s")
            assert memory.health().ok
            assert memory.stats().policy.startswith("uniform" if ranker == "random" else ranker)
            assert memory.recall("task 1").error is None


def test_a_snapshot_that_does_not_fit_is_learned_again(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        for i in range(5):
            memory.reward(memory.recall(f"task {i}").episode_id, 1.0, solution="s")
    (snapshot,) = (tmp_path / "m/snapshots").glob("*.npz")
    with np.load(snapshot) as arrays:
        kept = {name: arrays[name] for name in arrays.files if not name.startswith("value.")}
    np.savez(snapshot, **kept)
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        assert memory.recall("task 1").error is None
        assert memory.health().ok
        assert state_of(memory).policy.rewards == 5


@pytest.mark.slow
def test_abandoned_recalls_do_not_crowd_out_new_ones(ram: CascadeMemory):
    ram.add([("a", "1"), ("b", "2")])
    policy = state_of(ram).policy
    for _ in range(1_040):
        ram.recall("a")
    assert len(policy.expected) == 1_024  # type: ignore[attr-defined]
    newest = engine_of(ram).parts.ledger.episodes.one(ram.recall("a").episode_id)
    assert newest is not None
    assert max(policy.expected) >= 1_041  # type: ignore[attr-defined]


# -- forgetting and following ------------------------------------------------------------------------------------------------


def test_cases_added_right_after_a_wipe_are_found(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        memory.add("old", "s")
        memory.recall("old")
        _elsewhere(tmp_path / "m", 'memory.forget(everything=True); memory.add("new", "t")')
        assert [case.solution for case in memory.cases.search("new", k=5).cases] == ["t"]
        assert all(check.ok for check in memory.data.examine())


@pytest.mark.long
@pytest.mark.parametrize("clean", [True, False])
def test_a_mirror_made_anew_after_a_wipe_holds_every_case(tmp_path: Path, monkeypatch, clean: bool):
    monkeypatch.setattr("cascade_memory.engine.mirror_projection.BUILD_ELSEWHERE", 100)
    _elsewhere(
        tmp_path / "m",
        f"""
        memory.add([(f"old {{i}}", "s") for i in range(3)])
        memory.forget(everything=True)
        memory.add([(f"query {{i}}", "s") for i in range(200)], progress=False)
        memory.sync()
        if not {clean}:
            import os
            os._exit(0)
        """,
    )
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as memory:
        if clean:
            memory.data.rebuild()
        memory.add("one more", "s")
        memory.sync()
        assert engine_of(memory).parts.mirror is not None
        assert engine_of(memory).parts.mirror.count("default") == 201
        assert engine_of(memory).feeder is not None
        while engine_of(memory).feeder.state == "rebuilding":
            threading.Event().wait(0.1)
        memory.sync()
        assert engine_of(memory).parts.mirror.count("default") == 201


def test_a_follower_cannot_take_the_owner_s_mirror_away(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing", learn="inline") as owner:
        owner.add("task", "s")
        owner.sync()
        said = _elsewhere(
            tmp_path / "m",
            """
            from cascade_memory.errors import StoreError
            try:
                memory.data.rebuild()
            except StoreError as error:
                print(error)
            """,
        )
        assert "another process owns this folder" in said
        owner.add("task 2", "s")
        owner.sync()
        assert all(check.ok for check in owner.data.examine())


@pytest.mark.parametrize("how", ["emptied", "deleted"])
def test_a_ledger_that_is_gone_is_no_new_folder(tmp_path: Path, how: str):
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        memory.add([(f"q{i}", "s") for i in range(5)])
    ledger = tmp_path / "m/ledger.sqlite3"
    ledger.write_bytes(b"") if how == "emptied" else ledger.unlink()
    with pytest.raises(StoreCorrupt, match="missing or empty"):
        CascadeMemory(tmp_path / "m", embedder="hashing")
    assert (tmp_path / "m/chroma/chroma.sqlite3").exists()


def test_forgetting_one_of_two_episodes_keeps_what_the_other_verified(ram: CascadeMemory):
    first, second = (ram.recall("task").episode_id for _ in range(2))
    case_id = ram.reward(first, 1.0, solution="s")
    assert ram.reward(second, 1.0, solution="s") == case_id
    assert ram.forget(episode_id=first).cases == 0
    assert ram.stats().copies == 1
    assert ram.forget(episode_id=second).cases == 1


# -- rewards ---------------------------------------------------------------------------------------------------------------


def test_a_trusted_word_takes_the_place_of_the_agent_s_own(ram: CascadeMemory):
    episode = ram.recall("task").episode_id
    assert ram.reward(episode, 1.0, solution="s", source="agent") is None
    assert ram.stats().cases == 0
    (seen,) = ram.review.reported()
    assert ram.reward(episode, 1.0, source="human", confirms=seen.fingerprint) is not None  # with what the agent reported
    assert ram.stats().cases == 1
    with pytest.raises(AlreadyRewarded):
        ram.reward(episode, 0.0, source="agent")


def test_a_solution_that_comes_after_the_reward_is_kept(ram: CascadeMemory):
    episode = ram.recall("task").episode_id
    assert ram.reward(episode, 1.0) is None
    case_id = ram.reward(episode, 1.0, solution="s")
    assert case_id is not None
    assert ram.reward(episode, 1.0, solution="s") == case_id  # a repeated request gets the same answer
    assert ram.stats().copies == 1


def test_a_run_that_is_over_keeps_its_solution_for_a_later_reward(tmp_path: Path):
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        with memory.episode("task") as episode:
            episode.solution = "s"
        (pending,) = memory.episodes.pending()
        assert (pending.ended, pending.solution) == ("ok", "s")
    with CascadeMemory(tmp_path / "m", embedder="hashing") as memory:
        case_id = memory.reward(episode.id, 1.0)
        assert case_id is not None
        assert memory.cases.get(case_id).solution == "s"


def test_an_episode_block_in_another_namespace_is_rewarded_there():
    asked = []
    with CascadeMemory(embedder="hashing", reward_fn=lambda episode: asked.append(episode.namespace)) as memory:
        with memory.acting(namespace="bob").episode("task") as episode:
            episode.reward(1.0, solution="s")
        with memory.acting(namespace="bob").episode("task"):
            pass
        assert memory.acting(namespace="bob").stats().cases == 1
        assert asked == ["bob"]
        with pytest.raises(UnknownEpisode):
            memory.episodes.discard(memory.acting(namespace="bob").recall("task").episode_id)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
def test_an_interrupted_block_is_censored_and_nobody_is_asked(interruption: type[BaseException]):
    asked: list[object] = []
    with CascadeMemory(embedder="hashing", reward_fn=asked.append) as memory:  # type: ignore[arg-type]
        with pytest.raises(interruption), memory.episode("task"):
            raise interruption
        assert asked == []
        assert memory.stats().censored == 1


def test_an_async_reward_fn_is_awaited_with_and_without_a_running_loop():
    async def judge(episode: object) -> float:
        await asyncio.sleep(0)
        return 1.0

    with CascadeMemory(embedder="hashing", reward_fn=judge) as memory:
        with memory.episode("task") as episode:
            episode.solution = "s"

        async def inside() -> float | None:
            with memory.episode("another") as second:
                second.solution = "t"
            third = await memory.arecall("a third")
            return await memory.aend(third.episode_id, solution="u")

        assert asyncio.run(inside()) == 1.0
        assert (memory.stats().cases, memory.stats().mean_reward) == (3, 1.0)


def test_an_episode_that_is_over_is_not_ended_again():
    asked: list[object] = []
    with CascadeMemory(embedder="hashing", reward_fn=lambda episode: bool(asked.append(episode)) or True) as memory:
        episode = memory.recall("task").episode_id
        assert memory.end(episode, solution="s") == 1.0
        assert memory.end(episode, solution="s") is None
        assert len(asked) == 1
        with pytest.raises(InvalidInput, match="status must be"):
            memory.end(episode, status="fine")


def test_the_newest_episode_of_a_thread_is_found(ram: CascadeMemory):
    ram.recall("one", thread_id="T")
    second = ram.recall("two", thread_id="T").episode_id
    ram.recall("three", thread_id="U")
    latest = ram.episodes.latest("T")
    assert latest is not None
    assert (latest.id, latest.thread_id) == (second, "T")
    assert ram.episodes.latest("nobody's") is None


def test_after_a_recall_that_failed_open_nothing_breaks(ram: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    ram.add("task", "s")

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(engine_of(ram).parts.ledger, "record", fail)
        with pytest.warns(RuntimeWarning, match="could not store a recall"):
            recall = ram.recall("task")
    assert recall.cases[0].solution == "s"
    assert ram.reward(recall.episode_id, 1.0, solution="s") is None
    with pytest.raises(UnknownEpisode):
        ram.reward("made up", 1.0)


def test_a_batch_with_a_broken_vector_stores_nothing(ram: CascadeMemory):
    embed = engine_of(ram).parts.embedder.embed

    def broken(texts: list[str]) -> np.ndarray:
        vectors = embed(texts)
        return vectors * np.nan if "q90" in texts else vectors

    engine_of(ram).parts.embedder.embed = broken  # type: ignore[method-assign]
    with pytest.raises(InvalidInput):
        ram.add([(f"q{i}", "s") for i in range(100)], progress=False)
    assert ram.stats().cases == 0


def test_looking_at_a_namespace_does_not_make_it(ram: CascadeMemory):
    assert ram.acting(namespace="typo").stats().cases == 0
    assert "typo" not in engine_of(ram).parts.ledger.namespaces()


def test_memories_in_ram_that_nobody_closes_leave_no_thread():
    before = threading.active_count()
    for _ in range(20):
        CascadeMemory(embedder="hashing").recall("task")
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert threading.active_count() <= before
