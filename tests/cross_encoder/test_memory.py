"""A memory whose ranker is a cross-encoder that learns."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from inside import engine_of, state_of
from later import Later
from small_tasks import fill, play, scores, version

from cascade_memory import CascadeMemory
from cascade_memory.assembly.rankers import cross_encoder
from cascade_memory.bandit.neural_bandit import Schedule
from cascade_memory.bandit.rivals import NeuralLinUCB, ThompsonSampling
from cascade_memory.errors import InvalidInput

torch = Later("torch")


def test_a_folder_s_name_is_a_ranker(reranker):
    with CascadeMemory(embedder="hashing", ranker=reranker, learn="inline") as memory:
        fill(memory)
        recall = memory.recall("heat the egg in fridge")
        memory.reward(recall.episode_id, 1.0)
        assert memory.stats().policy == "neural-linlogucb-2"


def test_a_name_that_is_neither_is_refused_with_the_names():
    with pytest.raises(InvalidInput, match="owner/name"):
        CascadeMemory(embedder="hashing", ranker="lihgt")


@pytest.mark.slow
def test_one_seed_gives_the_same_choices_twice(learning, tmp_path):
    runs = []
    for name in ("one", "other"):
        memory = learning(tmp_path / name)
        fill(memory)
        runs.append((play(memory, 30), scores(memory), version(memory)))
    assert runs[0] == runs[1]
    assert runs[0][2] == 7


def test_what_was_learned_is_there_after_reopening(learning):
    memory = learning()
    fill(memory)
    play(memory, 18)
    before, steps = scores(memory), version(memory)
    memory.close()
    memory = learning()
    assert scores(memory) == pytest.approx(before, abs=1e-3)
    assert version(memory) == steps == 4
    play(memory, 2, start=18)  # two were waiting for the next step of the encoder
    assert version(memory) == 5


def test_features_are_not_written_down(learning):
    memory = learning()
    fill(memory)
    play(memory, 3)
    connection = engine_of(memory).parts.ledger.connections
    with connection.read() as reading:
        assert reading.execute("SELECT max(length(features)) FROM recall").fetchone() == (0,)


def test_without_its_snapshots_it_learns_everything_again(learning, tmp_path):
    memory = learning()
    fill(memory)
    play(memory, 18)
    before = scores(memory)
    memory.close()
    for file in (tmp_path / "m" / "snapshots").iterdir():
        file.unlink()
    memory = learning()
    assert scores(memory) == pytest.approx(before, abs=1e-3)
    assert version(memory) == 4


def test_a_snapshot_without_its_weights_is_passed_over(learning, tmp_path):
    memory = learning()
    fill(memory)
    play(memory, 18)
    before = scores(memory)
    memory.close()
    (weights,) = (tmp_path / "m" / "snapshots").glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:1000])
    memory = learning()
    assert scores(memory) == pytest.approx(before, abs=1e-3)


@pytest.mark.slow
def test_old_weights_go_with_their_snapshots(learning, tmp_path):
    memory = learning()
    fill(memory)
    for start in range(0, 40, 8):
        play(memory, 8, start)
        state_of(memory).learner.save()
    memory.close()
    lines = sorted(file.stem.split("-")[2] for file in (tmp_path / "m" / "snapshots").glob("*.safetensors"))
    assert lines == sorted(file.stem.split("-")[2] for file in (tmp_path / "m" / "snapshots").glob("*.npz"))
    assert len(lines) == 2


def test_forgetting_makes_the_head_afresh_and_says_what_stays(learning):
    memory = learning()
    fill(memory)
    play(memory, 10)
    receipt = memory.forget(memory.cases.search("heat the cup on desk").cases[0].id)
    assert "memory.data.refit()" in receipt.stale[0]
    assert version(memory) == 2
    memory.data.refit()
    memory.sync()
    assert memory.forget(memory.cases.search("cool the cup on desk").cases[0].id).stale


def test_weights_from_before_something_was_forgotten_are_not_loaded(learning, tmp_path):
    memory = learning()
    fill(memory)
    solved = [memory.recall(f"heat the cup {i}").reward(1.0, solution=f"in fridge {i}") for i in range(12)]
    assert version(memory) == 3
    memory.close()
    shutil.copytree(tmp_path / "m" / "snapshots", tmp_path / "old")
    memory = learning()
    memory.forget(solved[6:])
    memory.close()
    shutil.rmtree(tmp_path / "m" / "snapshots")
    shutil.copytree(tmp_path / "old", tmp_path / "m" / "snapshots")  # as if a process had died before it deleted them
    memory = learning()
    memory.sync()
    assert memory.stats().rewards == 6
    assert version(memory) == 1


def test_a_refit_is_learning_from_the_beginning(learning, tmp_path):
    memory = learning()
    fill(memory)
    play(memory, 12)
    before = scores(memory)
    memory.data.refit()
    assert scores(memory) == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize("bandit", [NeuralLinUCB, ThompsonSampling])
def test_other_heads_learn_on_the_same_encoder(bandit, learning):
    memory = learning(ranker={"bandit": bandit})
    fill(memory)
    before = scores(memory)
    play(memory, 9)
    assert scores(memory) != before
    assert version(memory) == 2


def test_an_untrained_cross_encoder_is_np_cbr(reranker):
    with CascadeMemory(embedder="hashing", ranker=cross_encoder(reranker, trained=False), learn="inline") as memory:
        fill(memory)
        before = scores(memory)
        play(memory, 40)
        assert scores(memory) == before
        assert memory.stats().policy == "frozen-head-1"


def test_hindsight_teaches_the_encoder_about_candidates_that_were_not_shown(learning, tmp_path):
    values = []
    for most in (0, 3):
        memory = learning(tmp_path / str(most), schedule=Schedule(every=4, hindsight=most))
        fill(memory)
        for task in ("heat the egg", "cool the cup", "clean the egg", "heat the cup"):
            memory.reward(memory.recall(task).episode_id, 1.0, solution="heat the egg in fridge")
        values.append(state_of(memory).encoder.fitted_outcomes)
    assert values == [4, 16]


def test_several_cases_are_each_a_pair(learning):
    memory = learning(k=3, ranker={"credit": lambda outcome: outcome.chosen})
    fill(memory)
    play(memory, 4)
    assert state_of(memory).encoder.fitted_outcomes == 12


def test_an_abandoned_episode_leaves_no_trace_in_a(learning):
    memory = learning()
    fill(memory)
    play(memory, 5)
    policy = state_of(memory).policy
    before = policy.posterior.precision
    recall = memory.recall("heat the egg")
    assert not np.allclose(policy.posterior.precision, before)
    memory.episodes.discard(recall.episode_id)
    np.testing.assert_allclose(state_of(memory).policy.posterior.precision, before, atol=1e-9)
