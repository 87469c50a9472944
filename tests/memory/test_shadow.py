"""A second ranker watches: it sees, learns and is logged, and changes nothing."""

from __future__ import annotations

import time

import numpy as np
import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.assembly import rankers
from cascade_memory.assembly.rankers import light, similarity
from cascade_memory.bandit.light import LightPolicy
from cascade_memory.encoders.light import FEATURES
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.stream import SimulatedSolver, play
from cascade_memory.evaluation.synthetic import tickets


def _play(memory: CascadeMemory, n: int = 80, seed: int = 0) -> list[str]:
    """Return what was shown, in order."""
    stream = tickets(n, seed)
    solver = SimulatedSolver([task.solution for task in stream], zero_shot=0.45, misled=0.5, seed=seed)
    shown = []
    for i, task in enumerate(stream):
        play(memory, task.query, solver, i)
        (*_, last) = engine_of(memory).parts.ledger.episodes.listed(1)
        shown.append(" ".join(memory.cases.get(case).query for case in last.cases))
    return shown


def _policy(memory: CascadeMemory) -> LightPolicy:
    shadow = state_of(memory).shadow
    assert shadow is not None
    assert isinstance(shadow.policy, LightPolicy)
    return shadow.policy


@pytest.mark.slow
@pytest.mark.parametrize("ranker", ["light", "similarity"])
def test_it_never_changes_what_is_returned(ranker):
    with CascadeMemory(embedder="hashing", learn="inline", ranker=ranker) as alone:
        without = _play(alone)
    with CascadeMemory(embedder="hashing", learn="inline", ranker=ranker, ranking=Ranking(shadow="light")) as watched:
        assert _play(watched) == without


@pytest.mark.slow
def test_it_learns_from_what_the_other_one_showed_and_learns_that_again_after_opening(on_disk):
    with on_disk(ranker="similarity", ranking=Ranking(shadow="light")) as memory:
        _play(memory)
        first = _policy(memory)
        assert first.rewards == 80
        assert not np.allclose(first.head.posterior.mean, rankers.light().policy().head.posterior.mean)
    with on_disk(ranker="similarity", ranking=Ranking(shadow="light")) as memory:
        np.testing.assert_allclose(_policy(memory).head.posterior.mean, first.head.posterior.mean, atol=1e-6)
        assert _policy(memory).rewards == 80


def test_what_is_forgotten_is_forgotten_by_the_shadow_too(ram):
    with CascadeMemory(embedder="hashing", learn="inline", ranker="similarity", ranking=Ranking(shadow="light")) as memory:
        _play(memory, 30)
        memory.forget(everything=True)
        assert _policy(memory).rewards == 0
        assert np.allclose(_policy(memory).head.posterior.mean, rankers.light().policy().head.posterior.mean)


def test_one_case_that_is_forgotten_leaves_the_shadow_s_opinions_readable():
    with CascadeMemory(embedder="hashing", learn="inline", ranker="similarity", ranking=Ranking(shadow="light")) as memory:
        _play(memory, 30)
        before = len(engine_of(memory).parts.ledger.lessons.history(1, 100, shadow="light-1"))
        (case,) = memory.cases.search("camera").cases
        memory.forget(case.id)
        lessons = engine_of(memory).parts.ledger.lessons.history(1, 100, shadow="light-1")
        assert 0 < len(lessons) < before
        assert all(lesson.slate.features.shape == (len(lesson.slate), len(FEATURES)) for lesson in lessons if len(lesson.slate))
        assert _policy(memory).rewards == len(lessons)


def test_a_failing_shadow_costs_neither_recall_nor_reward():
    class Broken(LightPolicy):
        def select(self, *_, **__):
            raise RuntimeError("no idea")

        def update(self, *_):
            raise RuntimeError("no idea either")

    ranker = light()
    broken = type(ranker)(name="broken", encoder=ranker.encoder, policy=lambda: Broken(5), features=ranker.features)
    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(shadow=broken)) as memory:
        with CascadeMemory(embedder="hashing", learn="inline") as alone:
            assert _play(memory, 20) == _play(alone, 20)
        assert state_of(memory).policy.rewards == 20
        assert memory.health().failures["shadow"] >= 20


def test_it_costs_a_recall_no_more_than_the_ranker_itself_does():
    memories = [CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(shadow=shadow)) for shadow in (None, "light")]
    spent: list[list[float]] = [[], []]
    for memory in memories:
        memory.add([(task.query, task.solution) for task in tickets(200)], progress=False)
    for task in tickets(60, 1):
        for memory, times in zip(memories, spent, strict=True):
            start = time.thread_time()  # of this thread alone, whatever else the machine is busy with
            memory.recall(task.query)
            times.append(time.thread_time() - start)
    for memory in memories:
        memory.close()
    alone, watched = (sorted(times)[15] for times in spent)
    assert watched < 2 * alone, (alone, watched)


@pytest.mark.parametrize("shadow", ["latest", "some/model"])
def test_what_cannot_watch_is_refused(shadow):
    with pytest.raises(InvalidInput, match="cannot be a shadow"):
        CascadeMemory(embedder="hashing", ranking=Ranking(shadow=shadow))


def test_two_handles_agree_on_the_shadow(on_disk):
    on_disk(ranking=Ranking(shadow="similarity"))
    on_disk()  # takes what there is
    with pytest.raises(InvalidInput, match="shadow='similarity'"):
        on_disk(ranking=Ranking(shadow=similarity()))


def test_opinions_travel_with_an_export(tmp_path):
    with CascadeMemory(embedder="hashing", learn="inline", ranker="similarity", ranking=Ranking(shadow="light")) as memory:
        _play(memory, 20)
        memory.data.export(tmp_path / "all.jsonl", progress=False)
        lines = (tmp_path / "all.jsonl").read_text().splitlines()
        lessons = engine_of(memory).parts.ledger.lessons.history(1, 100, shadow="light-1")
    with CascadeMemory(embedder="hashing", learn="inline") as copy:
        copy.data.import_(lines, progress=False)
        copied = engine_of(copy).parts.ledger.lessons.history(1, 100, shadow="light-1")
    for one, other in zip(lessons, copied, strict=True):
        np.testing.assert_array_equal(one.slate.features, other.slate.features)
        np.testing.assert_array_equal(one.context, other.context)
