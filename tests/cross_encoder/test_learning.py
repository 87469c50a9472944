"""Training while agents work: whose thread, what waits, what fails, what a death leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from inside import engine_of, state_of
from later import Later
from small_tasks import TASKS, fill, play, scores, version

from cascade_memory.bandit.neural_bandit import Schedule
from cascade_memory.encoders.cross_encoder import training
from cascade_memory.snapshots import Snapshot, SnapshotStore

torch = Later("torch")


def test_recall_never_waits_for_training(learning, monkeypatch):
    memory = learning(learn="background")
    fill(memory)
    play(memory, 1)
    memory.sync()
    apprentice = state_of(memory).encoder.apprentice
    begun, go_on, step = threading.Event(), threading.Event(), apprentice.step

    def slow(*args, **options):
        begun.set()
        assert go_on.wait(60)
        return step(*args, **options)

    monkeypatch.setattr(apprentice, "step", slow)
    play(memory, 3, start=1)
    assert begun.wait(60)
    try:
        for i in range(20):  # while training is held up: whoever waited for it would never return
            recall = memory.recall(f"heat the egg in fridge {i}")
            assert recall.error is None
            memory.reward(recall.episode_id, 1.0)
        assert version(memory) == 0
    finally:
        go_on.set()
    memory.sync()
    assert version(memory) == 6
    assert memory.health().ok


@pytest.mark.slow
def test_locks_on_the_way_of_a_recall_are_held_for_moments_while_training(learning):
    """Waiting for locks is measured, not wall time: on a busy machine training takes the processor as well."""
    memory = learning(learn="background", schedule=Schedule(every=2))
    fill(memory)
    play(memory, 2)
    waited: list[float] = []

    class Timed:
        def __init__(self, lock):
            self._lock = lock

        def __enter__(self):
            began = time.perf_counter_ns()
            self._lock.__enter__()
            if threading.current_thread().name != "cascade-memory-learner":
                waited.append((time.perf_counter_ns() - began) / 1e6)

        def __exit__(self, *args):
            return self._lock.__exit__(*args)

    for i in range(40):
        encoder, policy = state_of(memory).learner.now
        for owner, name in ((policy, "_changing"), (encoder._features, "_lock"), (encoder._tokens, "_lock")):
            if not isinstance(vars(owner)[name], Timed):
                setattr(owner, name, Timed(vars(owner)[name]))
        play(memory, 1, start=2 + i)
    memory.sync()
    assert version(memory) == 21
    assert len(waited) > 100
    assert np.median(waited) < 1.0


def test_when_memory_runs_out_it_falls_back_to_similarity_and_says_so(learning, monkeypatch):
    memory = learning()
    fill(memory)
    play(memory, 1)
    encoder = state_of(memory).encoder

    def full(**inputs):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(encoder.serving, "forward", full)
    recall = memory.recall("heat the egg on desk now")
    similar = memory.cases.search("heat the egg on desk now")
    assert [case.id for case in recall.cases] == [case.id for case in similar.cases]
    assert not memory.health().ok
    assert "out of memory" in memory.health().last_error


def test_training_that_fails_is_tried_again_and_counted(learning, monkeypatch):
    memory = learning()
    fill(memory)
    play(memory, 1)
    apprentice = state_of(memory).encoder.apprentice
    step = apprentice.step

    def full(*args, **options):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(apprentice, "step", full)
    play(memory, 4, start=1)
    assert memory.health().failures == {"learn": 1}
    assert version(memory) == 0
    monkeypatch.setattr(apprentice, "step", step)
    play(memory, 4, start=5)
    assert version(memory) == 1


def _fail(monkeypatch, error: Exception) -> None:
    def full(*args, **options):
        raise error

    monkeypatch.setattr(training.Apprentice, "step", full)


def test_training_that_fails_at_opening_does_not_close_the_memory(learning, monkeypatch):
    memory = learning()
    fill(memory)
    play(memory, 6)
    state_of(memory).learner.save()
    play(memory, 1, start=6)
    with monkeypatch.context() as patch:
        patch.setattr(type(state_of(memory).learner), "save", lambda self: None)
        memory.close()
    with monkeypatch.context() as patch:
        _fail(patch, torch.cuda.OutOfMemoryError("CUDA out of memory"))
        memory = learning()
        play(memory, 3, start=7)
        assert memory.recall("heat the egg").cases
        assert memory.health().failures["learn"] >= 1
    play(memory, 4, start=10)
    assert version(memory) == 2


def test_opening_trains_on_the_learner_s_thread(learning, monkeypatch):
    memory = learning()
    fill(memory)
    play(memory, 9)
    for file in engine_of(memory).parts.snapshots.path.glob("*"):
        file.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(type(state_of(memory).learner), "save", lambda self: None)
        memory.close()
    threads, step = [], training.Apprentice.step

    def noted(self, *args, **options):
        threads.append(threading.current_thread().name)
        return step(self, *args, **options)

    monkeypatch.setattr(training.Apprentice, "step", noted)
    memory = learning(learn="background")
    assert memory.recall("heat the egg").cases
    for _ in range(200):
        if len(threads) == 2:
            break
        time.sleep(0.05)
    assert set(threads) == {"cascade-memory-learner"}


def test_what_failed_is_not_learned_twice_after_reopening(learning, monkeypatch):
    memory = learning()
    fill(memory)
    play(memory, 3)
    with monkeypatch.context() as patch:
        _fail(patch, torch.cuda.OutOfMemoryError("CUDA out of memory"))
        play(memory, 1, start=3)
    rewards = state_of(memory).policy.rewards
    memory.close()
    assert state_of(learning()).policy.rewards == rewards == 4


def test_a_correction_does_not_keep_the_encoder_from_being_trained(learning):
    memory = learning()
    fill(memory)
    for i in range(12):
        recall = memory.recall(f"heat the egg {i}")
        memory.reward(recall.episode_id, 1.0)
        if i % 3 == 2:
            memory.reward(recall.episode_id, 0.0, overwrite=True)
    assert version(memory) >= 2


def test_a_refit_goes_on_when_something_is_taken_back_meanwhile(learning, monkeypatch):
    memory = learning(learn="background")
    fill(memory)
    play(memory, 12)
    last = memory.recall("heat the egg")
    memory.reward(last.episode_id, 1.0)
    memory.sync()
    begun, go_on, step = threading.Event(), threading.Event(), training.Apprentice.step

    def slow(self, *args, **options):
        begun.set()
        assert go_on.wait(60)
        return step(self, *args, **options)

    monkeypatch.setattr(training.Apprentice, "step", slow)
    memory.data.refit()
    assert begun.wait(60)
    memory.reward(last.episode_id, 0.0, overwrite=True)
    go_on.set()
    memory.sync()
    assert version(memory) == 3


def test_an_episode_of_several_recalls_counts_once(learning):
    memory = learning()
    fill(memory)
    for i in range(4):
        first = memory.recall(f"heat the egg {i}")
        for _ in range(3):
            memory.recall(f"cool the cup {i}", episode_id=first.episode_id)
        memory.reward(first.episode_id, 1.0)
    assert version(memory) == 1


def test_a_search_asks_no_encoder(learning, monkeypatch):
    memory = learning()
    fill(memory)
    monkeypatch.setattr(state_of(memory).encoder.serving, "forward", None)
    assert memory.cases.search("heat the egg").cases
    assert memory.health().ok


def test_one_namespace_in_training_does_not_keep_the_others_waiting(learning, monkeypatch):
    memory = learning(learn="background")
    for name in ("a", "b"):
        memory.acting(namespace=name).add([(task, task) for task in TASKS], progress=False)
        memory.acting(namespace=name).recall("heat the egg")
    order, step, begun = [], training.Apprentice.step, threading.Event()

    def noted(self, *args, **options):
        begun.wait(30)
        order.append(id(self))
        return step(self, *args, **options)

    monkeypatch.setattr(training.Apprentice, "step", noted)
    for name, n in (("a", 16), ("b", 4)):
        for i in range(n):
            recall = memory.acting(namespace=name).recall(f"heat the egg {i}")
            memory.acting(namespace=name).reward(recall.episode_id, 1.0)
    begun.set()
    memory.sync()
    assert len(order) == 5
    assert order.index(next(one for one in order if one != order[0])) <= 2


def test_two_processes_do_not_mix_weights_and_arrays(tmp_path):
    store = SnapshotStore(tmp_path)
    common = {"namespace": 1, "seq": 10, "known": 3, "policy": "p", "encoder": "e"}

    def write(text: str):
        return lambda file: file.write_text(text)

    def dies(file):
        file.write_text("theirs")
        raise KeyboardInterrupt

    store.save(Snapshot(**common, state={"x": np.ones(1)}), write("ours"))
    with pytest.raises(KeyboardInterrupt):
        SnapshotStore(tmp_path).save(Snapshot(**common, state={"x": np.zeros(1)}), dies)
    store.save(Snapshot(**{**common, "seq": 11}, state={"x": np.ones(1)}), write("ours again"))
    assert len(list(tmp_path.glob("*.safetensors"))) == 3  # another process may be about to name one of them
    found = store.latest(1, policy="p", encoder="e", until=10)
    assert found.weights.read_text() == "ours"


_DIES = """
import os, sys, threading
sys.path[:0] = sys.argv[3:]
from inside import state_of
from small_tasks import fill, play
from cascade_memory import CascadeMemory, Ranking
from cascade_memory.assembly.rankers import cross_encoder
from cascade_memory.bandit.neural_bandit import Schedule
from cascade_memory.encoders.cross_encoder import training
import safetensors.torch

ranker = cross_encoder(sys.argv[2], schedule=Schedule(every=4), encoder_learning_rate=1e-3)
memory = CascadeMemory(sys.argv[1], embedder="hashing", ranker=ranker, learn="inline", ranking=Ranking(candidates=6))
fill(memory)
play(memory, 10)
state_of(memory).learner.save()
print("saved", flush=True)
play(memory, 5, start=10)  # what comes after the snapshot is in the ledger
when = os.environ["DIES"]
if when == "training":
    training.losses = lambda *args: os._exit(9)
if when == "saving":
    safetensors.torch.save_file = lambda tensors, file, **_: (open(file, "wb").write(b"half"), os._exit(9))
play(memory, 1, start=15)
if when == "saving":
    state_of(memory).learner.save()
os._exit(7)
"""


@pytest.mark.long
@pytest.mark.parametrize("when", ["training", "saving"])
def test_a_death_while_training_or_saving_leaves_the_last_complete_snapshot(when, learning, reranker, tmp_path, monkeypatch):
    here = Path(__file__).parent
    environment = {**os.environ, "DIES": when, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", _DIES, str(tmp_path / "m"), reranker, str(here.parent / "helpers")]
    died = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert died.returncode == 9, died.stderr
    assert "saved" in died.stdout
    shutil.copytree(tmp_path / "m", tmp_path / "copy")
    memory = learning()
    assert memory.stats().rewards == 16
    learned = scores(memory)
    assert version(memory) == 4  # two from the snapshot, the others from the ledger: the sixteenth outcome was acknowledged
    assert scores(learning(tmp_path / "copy")) == pytest.approx(learned, abs=1e-3)  # there is one way to go on from there
