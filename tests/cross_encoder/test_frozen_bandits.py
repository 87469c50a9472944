"""LinLogUCB and NeuralLogUCB on the features of a reranker that is not trained."""

from __future__ import annotations

import numpy as np
import pytest
from inside import engine_of, state_of
from small_tasks import fill, play, scores

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.assembly.rankers import cross_encoder
from cascade_memory.bandit.neural_bandit import Schedule
from cascade_memory.bandit.neural_logucb import NeuralLogUCB
from cascade_memory.bandit.rivals import LinLogUCB
from cascade_memory.errors import InvalidInput

FROZEN = [LinLogUCB, NeuralLogUCB]


@pytest.fixture(params=FROZEN)
def frozen(request, reranker, tmp_path):
    """Opens a memory in a folder, again and again."""
    opened = []

    def open_memory(path=tmp_path / "m", **options) -> CascadeMemory:
        given = {} if request.param is LinLogUCB else {"samples": 50}
        ranker = cross_encoder(reranker, bandit=request.param, **given)
        opened.append(
            CascadeMemory(path, ranker=ranker, embedder="hashing", learn="inline", ranking=Ranking(candidates=6), **options)
        )
        return opened[-1]

    yield open_memory
    for memory in opened:
        memory.close()


def test_it_learns_from_rewards_and_the_encoder_stays_as_it_is(frozen):
    memory = frozen()
    fill(memory)
    before = scores(memory)
    play(memory, 20)
    assert state_of(memory).learner.policy.rewards == 20
    assert scores(memory) != pytest.approx(before, abs=1e-6)
    assert state_of(memory).learner.encoder.version == 0


def test_features_are_not_written_down_and_everything_is_there_after_reopening(frozen):
    memory = frozen()
    fill(memory)
    play(memory, 20)
    before = scores(memory)
    with engine_of(memory).parts.ledger.connections.read() as reading:
        assert reading.execute("SELECT max(length(features)) FROM recall").fetchone() == (0,)
    memory.close()
    memory = frozen()
    assert scores(memory) == pytest.approx(before, abs=1e-3)


def test_without_a_snapshot_it_is_learned_again_from_the_texts(frozen, tmp_path):
    memory = frozen()
    fill(memory)
    play(memory, 20)
    before = state_of(memory).learner.policy.state_dict()["window.pairs"]
    memory.close()
    for file in (tmp_path / "m" / "snapshots").iterdir():
        file.unlink()
    memory = frozen()
    play(memory, 1, start=20)
    after = state_of(memory).learner.policy
    assert after.rewards == 21
    np.testing.assert_allclose(after.state_dict()["window.pairs"][:20], before, atol=1e-4)


def test_a_forgotten_case_is_left_out_of_what_is_learned_again(frozen):
    memory = frozen()
    fill(memory)
    play(memory, 12)
    case = memory.recall("heat the egg in fridge").cases[0].id
    memory.forget(case)
    play(memory, 1, start=12)
    assert state_of(memory).learner.policy.rewards <= 13


def test_a_schedule_says_that_nothing_is_trained(reranker):
    with pytest.raises(InvalidInput, match="leave out schedule"):
        cross_encoder(reranker, bandit=LinLogUCB, schedule=Schedule())
