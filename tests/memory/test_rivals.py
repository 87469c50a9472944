"""The rivals at work in a whole memory."""

from __future__ import annotations

import numpy as np
import pytest
from inside import state_of

from cascade_memory import CascadeMemory, Ranking, Retention
from cascade_memory.assembly import rankers, resolve_ranker
from cascade_memory.errors import InvalidInput

LEARNING = ("neural-linlogucb", "linlogucb", "neural-logucb", "neural-linucb", "thompson")


@pytest.mark.slow
@pytest.mark.parametrize("ranker", LEARNING)
def test_a_rival_learns_and_comes_back_with_what_it_learned(ranker: str, tmp_path):
    def score(memory: CascadeMemory) -> float:
        return memory.recall("task 3 of kind 3").explain().candidates[0].value

    with CascadeMemory(tmp_path / "m", embedder="hashing", ranker=ranker, learn="inline") as memory:
        memory.add([(f"task {i} of kind {i % 4}", f"solution {i % 4}") for i in range(20)], progress=False)
        before = score(memory)
        for i in range(30):
            memory.reward(memory.recall(f"task {i} of kind {i % 4}").episode_id, float(i % 3 > 0), solution=f"solution {i % 4}")
        after = score(memory)
    assert before != after
    with CascadeMemory(tmp_path / "m", embedder="hashing", ranker=ranker, learn="inline") as memory:
        assert memory.stats().rewards == 30
        np.testing.assert_allclose(score(memory), after, rtol=1e-3)


def test_the_latest_cases_come_newest_first_whatever_the_task():
    with CascadeMemory(embedder="hashing", ranker="latest", k=3, learn="inline") as memory:
        memory.add([(f"task {i} of kind {i % 4}", f"solution {i}") for i in range(50)], progress=False)
        assert [case.solution for case in memory.recall("task 3 of kind 3").cases] == [
            "solution 49",
            "solution 48",
            "solution 47",
        ]
        assert memory.cases.search("task 3 of kind 3").cases[0].solution == "solution 3"


def test_failures_are_among_the_latest_when_everything_is_retained():
    with CascadeMemory(embedder="hashing", ranker="latest", k=2, retention=Retention(retain_at=0.0), learn="inline") as memory:
        for reward, solution in ((1.0, "right"), (0.0, "wrong")):
            episode = memory.recall("a task").episode_id
            memory.reward(episode, reward, solution=solution, metadata={"reward": reward})
        recall = memory.recall("another")
        assert "Answer that was wrong:\nwrong" in recall.render()
        assert "Solution:\nright" in recall.render()
        assert not recall.render().startswith("Solved cases")
        shown = recall.cases
        assert [(case.solution, case.metadata["reward"]) for case in shown] == [("wrong", 0.0), ("right", 1.0)]


def test_zero_shot_shows_nothing_and_writes_everything_down():
    with CascadeMemory(embedder="hashing", ranker="zero-shot", ranking=Ranking(abstain=False), learn="inline") as memory:
        memory.add("a task", "a solution")
        recall = memory.recall("a task")
        memory.reward(recall.episode_id, 1.0, solution="another")
        assert recall.cases == ()
        assert memory.stats().rewards == 1


def test_two_similar_cases_share_the_credit_as_asked():
    moved: dict[str, float] = {}
    for credit in ("first", "all"):
        ranker = "neural-linlogucb"
        with CascadeMemory(
            embedder="hashing", ranker=ranker, k=2, ranking=Ranking(matcher=None, credit=credit), learn="inline"
        ) as memory:
            memory.add([("heat the cup", "microwave"), ("heat the big cup", "stove")], progress=False)
            before = [one.value for one in memory.recall("heat a cup").explain().candidates]
            memory.reward(memory.recall("heat a cup").episode_id, 1.0)
            after = [one.value for one in memory.recall("heat a cup").explain().candidates]
            moved[credit] = after[1] - before[1]
    assert moved["all"] > moved["first"]


def test_an_unknown_credit_is_refused_with_the_names():
    with pytest.raises(InvalidInput, match='"matched", "all", "first"'):
        CascadeMemory(embedder="hashing", ranking=Ranking(credit="everybody"))  # type: ignore[arg-type]


def test_a_function_may_say_who_is_credited():
    asked: list[int] = []

    def last(outcome):
        asked.append(len(outcome.chosen))
        return outcome.chosen[-1:]

    with CascadeMemory(
        embedder="hashing", ranker="neural-linlogucb", k=2, ranking=Ranking(credit=last), learn="inline"
    ) as memory:
        memory.add([("heat the cup", "microwave"), ("heat the big cup", "stove")], progress=False)
        memory.reward(memory.recall("heat a cup").episode_id, 1.0)
    assert asked
    assert set(asked) == {2}


def test_every_name_resolves():
    for name in rankers.BY_NAME:
        assert resolve_ranker(name, hindsight=True).name


@pytest.mark.slow
@pytest.mark.parametrize("ranker", ["neural-linlogucb", "neural-logucb"])
def test_where_chance_showed_nothing_no_pair_counts_as_seen(ranker):
    with CascadeMemory(embedder="hashing", ranker=ranker, learn="inline", ranking=Ranking(explore=0.9)) as memory:
        memory.add([(f"task {i}", f"answer {i}") for i in range(4)], progress=False)
        recalls = [memory.recall(f"task {i % 4}") for i in range(40)]
        shown = sum(bool(recall.cases) for recall in recalls)
        assert 0 < shown < 40
        policy = state_of(memory).policy
        assert len(policy.expected) == shown  # type: ignore[attr-defined]
        for recall in recalls:
            memory.reward(recall.episode_id, 1.0)
        assert not policy.expected  # type: ignore[attr-defined]
