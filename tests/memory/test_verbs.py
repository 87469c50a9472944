"""What a user does with a memory, and what comes of it."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import threading
import time
from typing import Any

import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, Episode, Ranking, Retention, Step, Trajectory, rewards
from cascade_memory.errors import InvalidInput


def _solve(memory: CascadeMemory, query: str, solution: str, **options: object) -> str | None:
    return memory.reward(memory.recall(query).episode_id, 1.0, solution=solution, **options)  # type: ignore[arg-type]


def test_an_empty_memory_recalls_nothing_and_opens_an_episode(ram: CascadeMemory):
    recall = ram.recall("heat the cup")
    assert recall.cases == ()
    assert not recall.abstained
    assert recall.render() == ""
    assert [episode.id for episode in ram.episodes.pending()] == [recall.episode_id]


def test_a_success_is_recalled_at_once(ram: CascadeMemory):
    case_id = _solve(ram, "heat the cup", "use the microwave", metadata={"room": "kitchen"})
    (case,) = ram.recall("heat a cup").cases
    assert (case.id, case.solution, dict(case.metadata)) == (case_id, "use the microwave", {"room": "kitchen"})
    assert 0 < case.similarity <= 1
    assert ram.cases.get(case.id).query == "heat the cup"


def test_a_failure_is_not_retained(ram: CascadeMemory):
    assert ram.reward(ram.recall("heat the cup").episode_id, 0.0, solution="use the fridge") is None
    assert ram.reward(ram.recall("heat the cup").episode_id, 0.5, solution="use the sun") is None
    assert ram.stats().cases == 0
    assert ram.stats().rewards == 2


def test_retain_at_lowers_the_bar():
    with CascadeMemory(embedder="hashing", retention=Retention(retain_at=0.5)) as memory:
        assert memory.reward(memory.recall("q").episode_id, 0.5, solution="s") is not None


def test_a_success_without_a_solution_teaches_but_is_not_retained(ram: CascadeMemory):
    assert ram.reward(ram.recall("q").episode_id, 1.0) is None
    assert ram.stats().rewards == 1


def test_an_agent_s_own_report_is_kept_but_neither_retained_nor_learned_from(ram: CascadeMemory):
    assert ram.reward(ram.recall("q").episode_id, 1.0, solution="s", source="agent") is None
    assert ram.stats().rewards == 1
    assert state_of(ram).policy.rewards == 0
    trusting = CascadeMemory(embedder="hashing", retention=Retention(retain_from=("agent",)))
    assert trusting.reward(trusting.recall("q").episode_id, 1.0, solution="s", source="agent") is not None
    trusting.close()


def test_the_same_pair_again_is_counted(ram: CascadeMemory):
    first, second = _solve(ram, "q", "s"), _solve(ram, "q", "s")
    assert first == second
    assert ram.cases.get(str(first)).copies == 2
    assert ram.stats().cases == 1


def test_several_recalls_belong_to_one_episode_and_the_case_to_its_first_query(ram: CascadeMemory):
    first = ram.recall("plan a trip to Oslo")
    second = ram.recall("find flights", episode_id=first.episode_id)
    assert second.episode_id == first.episode_id
    case_id = ram.reward(first.episode_id, 1.0, solution="fly")
    assert ram.cases.get(str(case_id)).query == "plan a trip to Oslo"
    assert ram.stats().episodes == 1
    assert ram.stats().recalls == 2


def test_the_caller_s_own_run_id_names_the_episode(ram: CascadeMemory):
    assert ram.recall("q", episode_id="run-7").episode_id == "run-7"
    assert ram.reward("run-7", 1.0, solution="s")


def test_overwriting_a_reward_takes_its_case_back(ram: CascadeMemory):
    episode = ram.recall("q").episode_id
    ram.reward(episode, 1.0, solution="wrong after all")
    ram.reward(episode, 0.0, overwrite=True)
    assert ram.recall("q").cases == ()
    assert ram.stats().cases == 0
    assert ram.stats().mean_reward == 0.0
    policy = state_of(ram).policy
    assert policy.rewards == 1


def test_k_returns_the_best_k_and_never_one_case_twice():
    with CascadeMemory(embedder="hashing", ranking=Ranking(abstain=False)) as memory:
        memory.add([(f"heat cup {i}", f"s{i}") for i in range(5)])
        for k in (1, 3, 5, 40):
            cases = memory.recall("heat cup", k=k).cases
            assert len({case.id for case in cases}) == len(cases) == min(k, 5)


def test_where_filters_before_anything_is_ranked(ram: CascadeMemory):
    ram.add([(f"heat cup {i}", f"s{i}", {"user": f"u{i % 2}"}) for i in range(6)])
    found = ram.cases.search("heat cup", k=10, where={"user": "u1"})
    assert {case.metadata["user"] for case in found.cases} == {"u1"}
    assert len(found.cases) == 3
    assert ram.cases.search("heat cup", where={"user": "nobody"}).cases == ()


def test_search_is_plain_similarity_opens_no_episode_and_is_logged_as_a_search(ram: CascadeMemory):
    ram.add([("heat the cup", "a"), ("cool the plate", "b")])
    found = ram.cases.search("cool the plate", k=2)
    assert [case.solution for case in found.cases] == ["b", "a"]
    assert ram.episodes.pending() == []
    kinds = [record["recall_kind"] for record in engine_of(ram).parts.ledger.archive.dump() if record["kind"] == "recall"]
    assert kinds == ["search"]


def test_namespaces_share_nothing(ram: CascadeMemory):
    ram.acting(namespace="a").add("heat the cup", "mine")
    assert ram.acting(namespace="b").recall("heat the cup").cases == ()
    assert ram.acting(namespace="b").cases.search("heat the cup", k=5).cases == ()
    case_id = ram.acting(namespace="a").cases.search("heat the cup").cases[0].id
    with pytest.raises(LookupError):
        ram.acting(namespace="b").cases.get(case_id)
    assert state_of(ram, "b").policy.rewards == 0


def test_adding_one_and_many(ram: CascadeMemory):
    one = ram.add("q0", "s0")
    many = ram.add([("q1", "s1"), ("q2", "s2", {"n": 1}), {"query": "q3", "solution": "s3", "metadata": {"n": 2}}])
    assert isinstance(one, str)
    assert [ram.cases.get(case_id).solution for case_id in [one, *many]] == ["s0", "s1", "s2", "s3"]
    assert ram.add([]) == []


def test_a_trajectory_is_a_solution(ram: CascadeMemory):
    walk = Trajectory(
        [
            Step(thought="find it", action="go to fridge 1", observation="You see cup 1."),
            Step(tool="search", arguments={"q": "cup"}, observation="Cups are containers."),
        ],
        answer="done",
    )
    ram.reward(ram.recall("find a cup").episode_id, 1.0, solution=walk)
    (case,) = ram.recall("find a cup").cases
    assert case.solution == walk
    assert "go to fridge 1" in ram.recall("find a cup").render()
    steps = [Step(action="look")]
    ram.reward(ram.recall("look around").episode_id, 1.0, solution=steps)
    assert ram.cases.search("look around").cases[0].solution == Trajectory(steps)


def test_expire_closes_old_episodes_and_discard_one(ram: CascadeMemory):
    old = ram.recall("old").episode_id
    time.sleep(0.02)
    assert ram.episodes.expire(dt.timedelta(hours=1)) == 0
    assert ram.episodes.expire(0.01) == 1
    young = ram.recall("young").episode_id
    assert ram.episodes.discard(young)
    stats = ram.stats()
    assert (stats.open, stats.censored, stats.expired) == (0, 1, 1)
    assert ram.episodes.get(old).status == "expired"  # type: ignore[union-attr]


def test_forgetting_by_id_filter_episode_and_namespace(ram: CascadeMemory):
    a, b = ram.add([("q1", "s1", {"user": "u"}), ("q2", "s2")])
    assert ram.forget(a).cases == 1
    assert ram.recall("q1", k=5).cases == () or all(case.id != a for case in ram.recall("q1", k=5).cases)
    ram.add("q3", "s3", metadata={"user": "u"})
    assert ram.forget(where={"user": "u"}).cases == 1
    episode = ram.recall("q4").episode_id
    ram.reward(episode, 1.0, solution="s4")
    receipt = ram.forget(episode_id=episode)
    assert (receipt.cases, receipt.episodes, receipt.outcomes) == (1, 1, 1)
    assert ram.episodes.get(episode) is None
    assert [case.id for case in ram.cases.search("q", k=9).cases] == [b]
    assert ram.forget(everything=True).cases == 1
    assert ram.cases.search("q", k=9).cases == ()
    assert ram.stats().episodes == 0
    assert ram.add("q5", "s5")
    assert len(ram.cases.search("q", k=9).cases) == 1


def test_after_forgetting_the_ranker_is_what_it_would_be_without_what_was_forgotten():
    def teach(memory: CascadeMemory, rounds: list[int]) -> None:
        for i in rounds:
            recall = memory.recall(f"task {i % 5} of kind {i % 3}")
            memory.reward(recall.episode_id, float(i % 4 != 0), solution=f"s{i % 3}")

    with CascadeMemory(embedder="hashing", learn="inline", ranking=Ranking(abstain=False)) as memory:
        teach(memory, list(range(40)))
        memory.recall("secret plan")
        (secret,) = [one.id for one in memory.episodes.pending()]
        memory.reward(secret, 1.0, solution="secret")
        memory.forget(episode_id=secret)
        policy = state_of(memory).policy
        after = policy.state_dict()
        policy.rebuild(engine_of(memory).parts.ledger.lessons.history(1, 10_000))
        for name, array in policy.state_dict().items():
            assert array == pytest.approx(after[name], abs=1e-9), name
        assert "secret" not in json.dumps(list(engine_of(memory).parts.ledger.archive.dump()))


def test_learning_is_off_when_it_is_off():
    with CascadeMemory(embedder="hashing", learn="off") as memory:
        for _ in range(5):
            _solve(memory, "q", "s")
        assert state_of(memory).policy.rewards == 0
        assert memory.stats().cases == 1


def test_learning_in_the_background_catches_up():
    with CascadeMemory(embedder="hashing") as memory:
        for i in range(30):
            _solve(memory, f"q{i}", "s")
        policy = state_of(memory).policy
        deadline = time.monotonic() + 10
        while policy.rewards < 30 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert policy.rewards == 30


@pytest.mark.slow
def test_one_seed_one_history_one_sequence_of_choices():
    def run() -> list[tuple[str, bool]]:
        with CascadeMemory(embedder="hashing", learn="inline") as memory:
            chosen = []
            for i in range(120):
                recall = memory.recall(f"task {i % 7} of kind {i % 3}")
                chosen.append((recall.cases[0].query if recall.cases else "", recall.abstained))
                memory.reward(recall.episode_id, float(i % 5 != 0), solution=f"s{i % 3}")
            return chosen

    assert run() == run()


def test_the_similarity_ranker_is_the_cosine_order_whatever_the_outcomes():
    with CascadeMemory(embedder="hashing", ranker="similarity", learn="inline") as memory:
        memory.add([("heat the cup", "bad"), ("cool the plate", "other")])
        for _ in range(30):
            recall = memory.recall("heat the cup")
            assert recall.cases[0].solution == "bad"
            memory.reward(recall.episode_id, 0.0)


# -- episodes as blocks ----------------------------------------------------------------------------------------------


def test_an_episode_block_rewards_what_it_was_told(ram: CascadeMemory):
    with ram.episode("heat the cup") as episode:
        assert episode.cases == ()
        episode.solution = "microwave"
        episode.reward(1.0)
    assert ram.recall("heat the cup").cases[0].solution == "microwave"
    assert ram.episodes.get(episode.id).status == "settled"  # type: ignore[union-attr]


def test_an_episode_block_asks_reward_fn():
    seen: list[Episode] = []

    def judge(episode: Episode) -> bool:
        seen.append(episode)
        return episode.solution == "42"

    with CascadeMemory(embedder="hashing", reward_fn=judge) as memory:
        with memory.episode("6 x 7") as episode:
            episode.solution = "42"
        assert memory.stats().mean_reward == 1.0
    assert (seen[0].query, seen[0].status) == ("6 x 7", "open")


def test_an_episode_block_without_outcome_stays_open(ram: CascadeMemory):
    with ram.episode("q") as episode:
        pass
    assert [one.id for one in ram.episodes.pending()] == [episode.id]


def test_an_error_in_the_block_censors_the_episode_and_goes_on_its_way(ram: CascadeMemory):
    with pytest.raises(ZeroDivisionError), ram.episode("q") as episode:
        1 / 0  # noqa: B018
    assert ram.episodes.get(episode.id).status == "censored"  # type: ignore[union-attr]
    assert ram.stats().rewards == 0


@pytest.mark.parametrize("wrong", [lambda: 1.0, lambda episode, answer: 1.0, 3])
def test_what_cannot_judge_an_episode_is_refused_when_the_memory_is_opened(wrong: Any):
    with pytest.raises(InvalidInput, match="reward_fn must be a function"):
        CascadeMemory(embedder="hashing", reward_fn=wrong)


def test_reward_fn_may_judge_an_error_and_its_own_error_never_hides_the_agent_s():
    with CascadeMemory(embedder="hashing", reward_fn=lambda episode: 0.0 if episode.status == "error" else None) as memory:
        with pytest.raises(ZeroDivisionError), memory.episode("q"):
            1 / 0  # noqa: B018
        assert memory.stats().rewards == 1

    def broken(episode: Episode) -> float:
        raise KeyError("judge")

    with CascadeMemory(embedder="hashing", reward_fn=broken) as memory:
        with pytest.raises(ZeroDivisionError), memory.episode("q"):
            1 / 0  # noqa: B018
        assert memory.health().failures == {"reward_fn": 1}
        with pytest.raises(KeyError, match="judge"), memory.episode("q"):
            pass


# -- async -----------------------------------------------------------------------------------------------------------


def test_the_async_twins_do_the_same_in_any_event_loop(ram: CascadeMemory):
    async def task(i: int) -> None:
        recall = await ram.arecall(f"task {i}")
        await ram.areward(recall.episode_id, 1.0, solution=f"s{i}")

    async def many() -> None:
        await asyncio.gather(*(task(i) for i in range(20)))

    asyncio.run(many())
    asyncio.run(many())
    assert ram.stats().cases == 20
    assert ram.stats().rewards == 40


@pytest.mark.slow
def test_a_hundred_threads_settle_each_episode_once(on_disk):
    memory = on_disk(learn="background")
    errors: list[Exception] = []

    def work(i: int) -> None:
        try:
            recall = memory.acting(namespace=f"n{i % 3}").recall(f"task {i}")
            for _ in range(2):
                memory.acting(namespace=f"n{i % 3}").reward(recall.episode_id, 1.0, solution=f"s{i}")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    stats = memory.stats(everywhere=True)
    assert (stats.cases, stats.rewards, stats.open) == (100, 100, 0)
    memory.sync()
    assert [memory.acting(namespace=f"n{n}").stats().cases for n in range(3)] == [34, 33, 33]


# -- plots -----------------------------------------------------------------------------------------------------------


def test_plot_draws_success_and_regret(ram: CascadeMemory, tmp_path):
    with pytest.raises(InvalidInput, match="nothing to plot"):
        ram.episodes.plot()
    for i in range(20):
        ram.reward(ram.recall("q").episode_id, float(i % 2), solution="s")
    figure = ram.episodes.plot(window=5)
    success, regret = figure.axes
    assert list(regret.lines[0].get_ydata())[-1] == 10.0
    assert list(success.lines[0].get_xdata()) == list(range(5, 21))
    figure.savefig(tmp_path / "plot.png")


@pytest.mark.parametrize("name", ["answer", "soluton", "query", "reward_fn"])
def test_a_misspelt_solution_is_refused_where_it_is_set(ram: CascadeMemory, name: str):
    with pytest.raises(AttributeError, match="set its solution"), ram.episode("q") as episode:
        setattr(episode, name, "It is 42.")
    assert ram.stats().censored == 1


def test_a_forgotten_solution_that_is_judged_is_warned_of():
    memory = CascadeMemory(embedder="hashing", reward_fn=lambda episode: "42" in episode.answer)
    with pytest.warns(UserWarning, match=r"to an episode without a solution: set episode\.solution"), memory.episode("q"):
        pass
    judged = CascadeMemory(embedder="hashing", reward_fn=rewards.contains({"q": "42"}))
    with judged.episode("q"):
        pass
    assert judged.stats().open == 1  # there is nothing to judge
