"""Off-policy estimates against a world whose truth is known, and their silence where nothing is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from inside import engine_of, state_of

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.bandit.exploration import mixed
from cascade_memory.bandit.light import LightPolicy
from cascade_memory.bandit.off_policy import Estimates, Logged, estimate
from cascade_memory.bandit.similarity import ShowNothing, SimilarityPolicy
from cascade_memory.cli import main
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.replay import replay
from cascade_memory.insight.measuring import is_one_choice, logged, with_nothing
from cascade_memory.ports.policy import Slate

_WORLD = {f"answer {i}": 0.15 + 0.12 * i for i in range(6)}  # how often each of six cases helps; nothing: 0.3
_ALONE = 0.3


def _slate(n: int = 6, seed: int = 0) -> Slate:
    rng = np.random.default_rng(seed)
    similarity = np.sort(rng.random(n))[::-1]
    features = rng.normal(size=(n, 5))
    features[:, 0] = similarity
    return Slate(features=features, similarity=similarity, groups=np.arange(n))


# -- the mix -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("abstain", [True, False])
def test_what_is_logged_is_how_often_it_happens(abstain):
    slate, policy = _slate(), SimilarityPolicy()
    choice = policy.select(slate, 1, abstain=abstain, seed=0)
    counts = np.zeros(7)
    for seed in range(4_000):
        drawn = mixed(policy, slate, choice, 1, epsilon=0.4, abstain=abstain, seed=seed)
        counts[6 if drawn.abstained else drawn.chosen[0]] += 1
    said = np.append(drawn.propensity, 1 - drawn.propensity.sum())
    assert (said > 1e-9).tolist() == [True] * 4 + [False, False, abstain]
    np.testing.assert_allclose(counts / 4_000, said, atol=0.03)


@pytest.mark.slow
def test_a_policy_that_draws_whether_to_show_is_logged_as_it_draws():
    policy, slate = LightPolicy(5), _slate()
    for key in range(40):  # learns that it is about as good to show nothing
        policy.value.observe(np.array([1.0, 0.0, 0.0]), shown=key % 2 == 0, reward=float(key % 4 < 2), fitted=None, weight=1.0)
    shown = np.array([not policy.select(slate, 1, abstain=True, seed=seed).abstained for seed in range(2_000)])
    assert 0.05 < shown.mean() < 0.95
    said, done = [], []
    for seed in range(2_000):
        choice = policy.select(slate, 1, abstain=True, seed=seed)
        drawn = mixed(policy, slate, choice, 1, epsilon=0.1, abstain=True, seed=seed)
        said.append(drawn.propensity.sum())
        done.append(not drawn.abstained)
    expected = 0.9 * shown.mean() + 0.1 * 4 / 5
    assert np.mean(said) == pytest.approx(expected, abs=0.03)
    assert np.mean(done) == pytest.approx(expected, abs=0.04)


def test_of_several_cases_the_first_one_is_drawn_and_the_probabilities_are_those_of_being_among_them():
    slate, policy = _slate(), SimilarityPolicy()
    choice = policy.select(slate, 2, abstain=False, seed=0)
    counts = np.zeros(6)
    for seed in range(3_000):
        drawn = mixed(policy, slate, choice, 2, epsilon=0.5, abstain=False, seed=seed)
        assert len(set(drawn.chosen.tolist())) == 2
        counts[drawn.chosen] += 1
    np.testing.assert_allclose(counts / 3_000, drawn.propensity, atol=0.04)


def test_the_context_is_that_of_the_case_which_is_shown():
    policy, slate = LightPolicy(5), _slate()
    choice = policy.select(slate, 1, abstain=False, seed=0)
    for seed in range(40):
        drawn = mixed(policy, slate, choice, 1, epsilon=0.9, abstain=False, seed=seed)
        if drawn.chosen[0] != choice.chosen[0]:
            assert drawn.context[2] == pytest.approx((slate.similarity[drawn.chosen[0]] - 0.6) * 5)
            return
    pytest.fail("nothing else was drawn")


def test_who_shows_nothing_explores_too():
    slate, policy = _slate(), ShowNothing()
    choice = policy.select(slate, 1, abstain=True, seed=0)
    drawn = [mixed(policy, slate, choice, 1, epsilon=0.5, abstain=True, seed=seed).abstained for seed in range(600)]
    assert np.mean(drawn) == pytest.approx(0.6, abs=0.07)


# -- the estimates -----------------------------------------------------------------------------------------------------


def _log(rng: np.random.Generator, n: int, *, wrong: float = 0.0) -> list[Logged]:
    """Three actions that earn 0.2, 0.5 and 0.8; the target takes the last one two times in three."""
    earns, target = np.array([0.2, 0.5, 0.8]), np.array([0.0, 1 / 3, 2 / 3])
    log = []
    for _ in range(n):
        behaviour = rng.dirichlet([2.0, 1.0, 1.0]) * 0.85 + 0.05
        action = int(rng.choice(3, p=behaviour))
        reward = float(rng.random() < earns[action])
        log.append(Logged(action=action, reward=reward, behaviour=behaviour, target=target, expected=earns + wrong))
    return log


@pytest.mark.long
@pytest.mark.parametrize("wrong", [0.0, 0.4])
def test_all_three_are_unbiased_and_their_intervals_cover_the_truth(wrong):
    truth, rng = 0.5 / 3 + 0.8 * 2 / 3, np.random.default_rng(4)
    found = [estimate(_log(rng, 300, wrong=wrong)) for _ in range(200)]
    for name in ("inverse", "normalised", "robust"):
        ones = [getattr(each, name) for each in found]
        errors = np.array([one.estimate - truth for one in ones])
        bias = 0.003 if name == "normalised" else 0.0  # of order 1/n, where the others have none
        assert abs(errors.mean()) < 3 * errors.std() / np.sqrt(200) + bias, name
        assert np.mean([one.low <= truth <= one.high for one in ones]) >= 0.91, name


def test_right_expectations_make_the_robust_estimate_the_narrowest():
    found = estimate(_log(np.random.default_rng(1), 500))
    assert found.robust is not None
    assert found.inverse is not None
    assert found.robust.high - found.robust.low < 0.7 * (found.inverse.high - found.inverse.low)


def test_what_could_not_happen_leaves_bounds_that_hold():
    target, truth = np.array([0.0, 0.0, 1.0]), 0.8
    rng, held = np.random.default_rng(0), []
    for _ in range(100):
        log = []
        for _ in range(200):
            possible = rng.random() < 0.7
            behaviour = np.array([0.5, 0.0, 0.5]) if possible else np.array([0.5, 0.5, 0.0])
            action = int(rng.choice(3, p=behaviour))
            reward = float(rng.random() < (0.2, 0.5, 0.8)[action])
            log.append(Logged(action=action, reward=reward, behaviour=behaviour, target=target, expected=np.full(3, np.nan)))
        found = estimate(log)
        assert found.inverse is found.normalised is found.robust is None
        assert found.uncovered == pytest.approx(0.3, abs=0.12)
        held.append(found.bounds.low <= truth <= found.bounds.high)
    assert np.mean(held) >= 0.95


def _always(weight: float, reward: float, n: int) -> list[Logged]:
    """One action is always taken, and earns the same every time; the target takes it with some weight, else never."""
    behaviour, target = np.array([0.5, 0.5]), np.array([weight / 2, 1 - weight / 2])
    return [Logged(action=0, reward=reward, behaviour=behaviour, target=target, expected=np.full(2, reward))] * n


def test_where_no_choice_was_ever_made_all_is_possible():
    found = estimate(_always(0.0, 1.0, 50))
    assert found.inverse is None
    assert (found.bounds.low, found.bounds.high) == (0.0, 1.0)


@pytest.mark.parametrize("reward", [0.0, 0.5, 1.0])
def test_rewards_that_are_all_alike_are_no_certainty(reward):
    few, many = estimate(_always(1.0, reward, 4)), estimate(_always(1.0, reward, 400))
    for name in ("inverse", "normalised", "robust", "bounds"):
        short, long = getattr(few, name), getattr(many, name)
        assert short.estimate == pytest.approx(reward)
        assert short.low <= short.estimate <= short.high
        assert 0.4 < short.high - short.low < 0.9, name
        assert 0.005 < long.high - long.low < 0.11, name


# -- the engine --------------------------------------------------------------------------------------------------------


def _played(
    seed: int, n: int = 60, *, path: Path | None = None, ranking: Ranking = Ranking(), **options: object
) -> CascadeMemory:
    """A memory of six cases that all answer any question, each with a success rate of its own."""
    rng = np.random.default_rng([seed, 9])
    options = {"ranker": "similarity", "learn": "off", **options}
    if options["learn"] == "off":
        ranking = replace(ranking, matcher=None)
    memory = CascadeMemory(path, embedder="hashing", ranking=ranking, **options)  # type: ignore[arg-type]
    memory.add([(f"how do I do thing {i}", answer) for i, answer in enumerate(_WORLD)], progress=False)
    for _ in range(13 * seed):  # other draws in every replication
        state_of(memory).seed()
    for _ in range(n):
        recall = memory.recall(f"how do I do thing {rng.integers(6)}")
        chance = _WORLD[str(recall.cases[0].solution)] if recall.cases else _ALONE
        memory.reward(recall.episode_id, float(rng.random() < chance))
    return memory


def _truth_and_estimate(memory: CascadeMemory) -> tuple[float, Estimates]:
    """What the second most similar case would have earned on the very slates that came, and what is estimated of it."""
    log, truth = [], []
    ledger = engine_of(memory).parts.ledger
    for one in ledger.insight.judged(1):
        assert is_one_choice(one)
        keys = ledger.lessons.asked(one.lesson.key)[1]  # type: ignore[index]
        truth.append(_WORLD[str(ledger.cases.by_key([int(keys[1])])[int(keys[1])].solution)])
        target = np.zeros(len(keys))
        target[1] = 1.0
        log.append(logged(one, with_nothing(target)))
    return float(np.mean(truth)), estimate(log)


@pytest.mark.parametrize("holdout", [0.0, 0.3])
@pytest.mark.long
def test_estimates_from_a_real_memory_are_unbiased_and_cover_the_truth(holdout):
    errors, covered = [], []
    for seed in range(20):
        # 150 episodes: ids, and so the choices, are drawn; with 60 the second case was never shown in one run of a hundred.
        with _played(seed, 150, ranking=Ranking(explore=0.5, abstain=seed % 2 == 0, holdout=holdout)) as memory:
            truth, found = _truth_and_estimate(memory)
        assert found.inverse is not None
        errors.append(found.inverse.estimate - truth)
        covered.append(found.inverse.low <= truth <= found.inverse.high)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(20)
    assert np.mean(covered) >= 0.85


def test_without_the_mix_nothing_is_identified_and_it_says_why(tmp_path):
    _played(0, path=tmp_path / "memory").close()
    found = replay(tmp_path / "memory", "zero-shot")
    assert found.certain
    assert found.estimates.inverse is None
    assert found.estimates.uncovered == 1.0
    assert "every choice was made with certainty" in found.verdict
    assert "between 0.000 and 1.000" in found.verdict
    same = replay(tmp_path / "memory", "similarity")  # the very policy that was in charge
    assert same.estimates.inverse is not None
    assert same.estimates.inverse.estimate == pytest.approx(same.logged.estimate)


@pytest.mark.slow
def test_the_holdout_alone_identifies_what_no_memory_earns(tmp_path):
    _played(3, 300, path=tmp_path / "memory", ranking=Ranking(holdout=0.4)).close()
    found = replay(tmp_path / "memory", "zero-shot").estimates
    assert found.normalised is not None
    width = found.normalised.high - found.normalised.low
    assert abs(found.normalised.estimate - _ALONE) <= width  # twice the interval: episodes' ids, and so the arms, are drawn


def test_what_the_mix_never_shows_is_not_identified(tmp_path):
    _played(0, path=tmp_path / "memory", ranking=Ranking(explore=0.5)).close()
    found = replay(tmp_path / "memory", "random")
    assert not found.certain
    assert found.estimates.uncovered == pytest.approx(2 / 6)
    assert "33.3 % of the policy's choices could never have been made" in found.verdict


def test_learners_are_replayed_on_the_signals_that_they_read(tmp_path):
    _played(0, 80, path=tmp_path / "light", ranker="light", learn="inline", ranking=Ranking(explore=0.5)).close()
    found = replay(tmp_path / "light", "neural-linlogucb")
    assert found.estimates.episodes == 80
    assert replay(tmp_path / "light", "light").estimates.robust is not None or found.estimates.robust is not None
    _played(0, 20, path=tmp_path / "plain", ranking=Ranking(shadow="light"), learn="inline").close()
    with pytest.raises(InvalidInput, match="shadow='light'"):
        replay(tmp_path / "plain", "light")
    assert replay(tmp_path / "plain", "shadow").estimates.episodes == 20
    with pytest.raises(InvalidInput, match="cannot be replayed"):
        replay(tmp_path / "plain", "latest")


@pytest.mark.parametrize("abstain", [True, False])
def test_who_was_told_to_show_a_case_always_is_replaced_by_one_who_does(abstain, tmp_path):
    _played(
        0, 60, path=tmp_path / "memory", ranker="light", learn="inline", ranking=Ranking(explore=0.3, abstain=abstain)
    ).close()
    found = replay(tmp_path / "memory", "light")  # the very ranker that was in charge
    assert found.estimates.inverse is not None, found.verdict


def test_lists_and_compacted_episodes_are_left_out(tmp_path):
    with _played(0, 20, path=tmp_path / "memory", ranking=Ranking(explore=0.5)) as memory:
        for _ in range(5):
            memory.reward(memory.recall("how do I do thing 2", k=2).episode_id, 1.0)
        twice = memory.recall("how do I do thing 1")
        memory.recall("how do I do thing 3", episode_id=twice.episode_id)
        memory.reward(twice.episode_id, 1.0)
        assert engine_of(memory).parts.ledger.lessons.compact(1, 16, 100) == 10  # of 26, but for the last 16
    found = replay(tmp_path / "memory", "similarity")
    assert (found.estimates.episodes, found.left_out) == (10, 16)


def test_an_episode_whose_ranker_failed_has_no_signals_to_replay(tmp_path, monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise ArithmeticError("broken")

    options = {"ranker": "light", "learn": "inline", "ranking": Ranking(explore=0.5)}
    with _played(0, 30, path=tmp_path / "memory", **options) as memory:
        monkeypatch.setattr(LightPolicy, "select", fails)
        for _ in range(4):
            memory.reward(memory.recall("how do I do thing 2").episode_id, 1.0)
        assert memory.health().failures["rank"] == 4
        monkeypatch.undo()
        memory.reward(memory.recall("how do I do thing 3").episode_id, 1.0)
    for policy in ("light", "neural-linlogucb"):
        found = replay(tmp_path / "memory", policy)
        assert (found.estimates.episodes, found.left_out) == (31, 4)


def test_whoever_lost_a_candidate_is_left_out_whatever_was_shown(tmp_path):
    options = {"ranking": Ranking(explore=0.5, candidates=3)}  # not every case is a candidate every time
    with _played(2, 60, path=tmp_path / "memory", **options) as memory:
        ledger = engine_of(memory).parts.ledger
        first = next(one for one in ledger.insight.judged(1) if len(one.lesson.chosen))
        case = int(ledger.lessons.asked(first.lesson.key)[1][first.lesson.chosen[0]])  # type: ignore[index]
        had = {one.lesson.key for one in ledger.insight.judged(1) if case in ledger.lessons.asked(one.lesson.key)[1]}  # type: ignore[index]
        assert 0 < len(had) < 60
        memory.forget(ledger.cases.by_key([case])[case].id)
        assert {one.lesson.key for one in ledger.insight.judged(1) if one.forgot} == had
        assert {one.lesson.key for one in ledger.insight.judged(1) if not is_one_choice(one)} == had
        exported = tmp_path / "all.jsonl"
        memory.data.export(exported)
    with CascadeMemory(embedder="hashing", learn="off") as other:
        other.data.import_(exported)
        assert sum(one.forgot for one in engine_of(other).parts.ledger.insight.judged(1)) == len(had)
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    for line in lines:  # as older versions wrote it
        if line.get("kind") == "recall" and line.pop("forgot"):
            line["k"] = -line["k"]
    exported.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with CascadeMemory(embedder="hashing", learn="off") as other:
        other.data.import_(exported)
        judged = list(engine_of(other).parts.ledger.insight.judged(1))
        assert sum(one.forgot for one in judged) == len(had)
        assert {one.k for one in judged} == {1}
    found = replay(tmp_path / "memory", "similarity")
    assert (found.estimates.episodes, found.left_out, found.forgot) == (60 - len(had), len(had), len(had))
    assert f"{len(had)} of them with a candidate that was forgotten" in dict(found.rows())["episodes"]
    with CascadeMemory(tmp_path / "memory", embedder="hashing", learn="off") as memory:
        ledger = engine_of(memory).parts.ledger
        memory.forget([one.id for one in ledger.cases.by_key(range(1, 7)).values()])
        assert all(one.forgot for one in ledger.insight.judged(1))
    with pytest.raises(InvalidInput, match="forgotten"):  # and not: 60 choices in an empty memory
        replay(tmp_path / "memory", "similarity")


def test_the_command(tmp_path, capsys):
    folder = str(tmp_path / "memory")
    _played(0, 60, path=tmp_path / "memory", ranking=Ranking(explore=0.5)).close()
    assert main(["bench", "replay", folder, "--policy", "similarity"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "inverse propensity" in out
    assert "This evaluates single choices" in out
    assert main(["bench", "replay", folder, "--policy", "similarity", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["estimates"]["inverse"]["estimate"] > 0
    assert main(["bench", "replay", folder, "--policy", "similarity", "--namespace", "other"]) == 2
    assert "there is no namespace 'other' yet" in capsys.readouterr().err
    assert main(["bench", "replay", folder, "--policy", "clever"]) == 2
