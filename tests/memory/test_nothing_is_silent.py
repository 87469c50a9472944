"""What a new user would otherwise have to find out alone: why nothing was kept, and which name was mistyped."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from cascade_memory import CascadeMemory, Retention
from cascade_memory.errors import InvalidInput

STORED_NO_CASE = "stored no case for a reward"


def rewarded(memory: CascadeMemory, value: float, **options: str) -> str | None:
    return memory.reward(memory.recall("heat some cup").episode_id, value, **options)


def test_rewards_that_kept_no_case_are_counted_by_why(ram: CascadeMemory):
    for _ in range(5):
        rewarded(ram, 0.9, solution="microwave it")
        rewarded(ram, 1.0)
    stats = ram.stats()
    assert (stats.rewards, stats.cases) == (10, 0)
    assert stats.unkept == {"below": 5, "solution": 5, "source": 0, "capped": 0}
    assert "not kept    10 of the rewards stored no case (5 below retain_at, 5 without a solution)" in str(stats)
    assert json.loads(json.dumps(stats.as_dict()))["unkept"]["below"] == 5
    assert "5 below retain_at" in stats._repr_html_()


def test_each_reason_is_told_once_with_what_to_do(ram: CascadeMemory):
    with pytest.warns(
        UserWarning,
        match=r"reward of 0.9: it is below retain_at=1; to store such solutions, open",
    ):
        rewarded(ram, 0.9, solution="microwave it")
    with pytest.warns(UserWarning, match=r"reward of 1: it came without a solution; to store .*, pass it as solution="):
        rewarded(ram, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rewarded(ram, 0.9, solution="microwave it")
        rewarded(ram, 1.0)


def test_the_warning_points_at_the_line_that_rewarded(ram: CascadeMemory):
    episode = ram.recall("heat some cup").episode_id
    with pytest.warns(UserWarning, match=STORED_NO_CASE) as said:
        ram.reward(episode, 1.0)
    assert said[0].filename == __file__


def test_failures_kept_cases_and_an_agent_s_own_word_are_no_news(ram: CascadeMemory):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rewarded(ram, 0.0)
        rewarded(ram, 0.4, solution="half of it")
        rewarded(ram, 1.0, solution="microwave it")
        rewarded(ram, 1.0, solution="microwave it", source="agent")
        ram.review.propose("cool some mug", "fridge")
    assert ram.stats().unkept == {"below": 1, "solution": 0, "source": 2, "capped": 0}
    assert "2 from a source that retain_from excludes" in str(ram.stats())


def test_who_brings_the_solution_later_is_counted_no_more(ram: CascadeMemory):
    episode = ram.recall("heat some cup").episode_id
    ram.reward(episode, 1.0)
    assert ram.stats().unkept["solution"] == 1
    assert ram.reward(episode, 1.0, solution="microwave it") is not None
    assert not any(ram.stats().unkept.values())
    assert "not kept" not in str(ram.stats())


def test_a_run_s_own_solution_is_one(ram: CascadeMemory):
    episode = ram.recall("heat some cup").episode_id
    ram.episodes.finish(episode, solution="microwave it")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ram.reward(episode, 1.0) is not None


def test_the_same_reward_again_says_nothing_new(ram: CascadeMemory):
    episode = ram.recall("heat some cup").episode_id
    ram.reward(episode, 1.0)
    ram.reward(episode, 1.0)
    assert ram.stats().unkept["solution"] == 1


def test_a_reward_function_that_never_gives_enough_is_told_of():
    with CascadeMemory(embedder="hashing", reward_fn=lambda episode: 0.9) as memory:
        with pytest.warns(UserWarning, match=STORED_NO_CASE), memory.episode("heat some cup") as episode:
            episode.solution = "microwave it"
        assert memory.stats().unkept["below"] == 1


def test_why_nothing_was_kept_travels_with_an_export(ram: CascadeMemory, tmp_path: Path):
    rewarded(ram, 0.9, solution="microwave it")
    ram.data.export(tmp_path / "x.jsonl", progress=False)
    with CascadeMemory(embedder="hashing") as other:
        other.data.import_(tmp_path / "x.jsonl", progress=False)
        assert other.stats().unkept == {"below": 1, "solution": 0, "source": 0, "capped": 0}
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    older = [{key: value for key, value in line.items() if key != "unkept"} for line in lines]
    forged = [{**line, "unkept": "because"} if line.get("kind") == "outcome" else line for line in lines]
    with CascadeMemory(embedder="hashing") as other:
        with pytest.raises(InvalidInput, match="unkept must be one of"):
            other.data.import_([json.dumps(line) for line in forged], progress=False)
        other.data.import_([json.dumps(line) for line in older], progress=False)
        assert other.stats().rewards == 1
        assert not any(other.stats().unkept.values())


def test_the_mean_of_no_rewards_is_none(ram: CascadeMemory):
    assert ram.stats().mean_reward is None
    assert "mean reward none yet" in str(ram.stats())
    rewarded(ram, 0.0)
    assert ram.stats().mean_reward == 0.0


# -- names ---------------------------------------------------------------------------------------------------------------


def test_counts_of_a_mistyped_namespace_say_so(ram: CascadeMemory):
    ram.acting(namespace="tenant-1").add("a", "b")
    ram.add("a", "b")
    found = ram.acting(namespace="tenant1").stats()
    assert not found.exists
    assert "there is no namespace 'tenant1' yet; there are 'tenant-1', 'default'" in str(found)
    assert ram.data.namespaces() == ["default", "tenant-1"], "to look makes none"
    assert ram.acting(namespace="tenant-1").stats().exists
    assert ram.stats(everywhere=True).exists


def test_a_fresh_memory_s_own_namespace_is_no_mistake(ram: CascadeMemory):
    assert ram.stats().exists
    assert ram.acting(namespace="default").stats().exists
    assert str(ram.stats()).startswith("namespace   default\n")


def test_of_thousands_of_namespaces_a_few_are_named(ram: CascadeMemory):
    for number in range(20):
        ram.acting(namespace=f"tenant-{number}").add("a", "b")
    assert str(ram.acting(namespace="x").stats()).count("tenant-") == 5
    assert "and 15 more" in str(ram.acting(namespace="x").stats())


# -- messages ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: CascadeMemory(embedder="hashing", namespace=""), "namespace is empty; pass whose cases these are"),
        (
            lambda: Retention(retain_from="host"),
            r"retain_from must be a collection of sources, such as \('host', 'human'\), not 'host'",
        ),
        (lambda: Retention(retain_from=3), "retain_from must be a collection of sources"),
        (lambda: Retention(retain_from=["nobody"]), "source must be one of host, human, env, judge, user, agent, not 'nobody'"),
        (lambda: Retention(retain_at=2), r"retain_at must lie in \[0, 1\], not 2"),
        (lambda: Retention(retain_at="1"), "retain_at must be a number"),
    ],
)
def test_a_wrong_option_is_named_as_what_it_is(wrong: Callable[[], object], words: str):
    with pytest.raises(InvalidInput, match=words):
        wrong()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("q", ""), "solution is empty; pass what solved the task"),
        (("q",), r"a case is \(query, solution\)"),
        ({"query": "q"}, "a case must have the keys query and solution"),
        ({"query": "", "solution": "s"}, "query is empty; pass the text of the task"),
        (("q", "s", {"k": None}), "metadata 'k' is a NoneType"),
        (None, r"a case is \(query, solution\)"),
    ],
)
def test_of_many_cases_the_wrong_one_is_named(ram: CascadeMemory, wrong: object, words: str):
    for cases in ([("a", "b"), ("c", "d"), wrong, ("e", "f")], iter([{"query": "a", "solution": "b"}, ("c", "d"), wrong])):
        with pytest.raises(InvalidInput, match=rf"^case 3: {words}.*; nothing was stored$"):
            ram.add(cases)
    assert ram.stats().cases == 0


def test_a_report_does_not_blame_a_ranker_that_had_nothing_to_rank(ram: CascadeMemory):
    rewarded(ram, 1.0)
    assert "no judged episode had a case to choose from" in str(ram.report())
    with CascadeMemory(embedder="hashing", ranker="similarity", learn="inline") as memory:
        memory.add("heat some cup", "microwave it")
        rewarded(memory, 1.0)
        assert "the ranker does not predict success (ranker='light' does)" in str(memory.report())
