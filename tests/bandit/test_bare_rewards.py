"""Where solutions never recur, only the reward of the shown case teaches: what the light policy makes of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cascade_memory.assembly.rankers import START
from cascade_memory.bandit.light import LightPolicy
from cascade_memory.ports.policy import Choice, Floats, Slate
from cascade_memory.testing.policy import shown_outcome

KINDS = 10
TASKS = 400
_DRAWN = 7  # signals; later ones say nothing in these streams, so that one more changes no draw


def _task(kind: int, rng: np.random.Generator) -> np.ndarray:
    query = np.zeros(KINDS + 6)
    query[kind] = 1.0
    query += 0.1 * rng.normal(size=len(query))
    return (query / np.linalg.norm(query)).astype(np.float32)


def _features(rng: np.random.Generator, candidates: int) -> np.ndarray:
    features = np.zeros((candidates, len(START)))
    features[:, :_DRAWN] = rng.normal(size=(candidates, _DRAWN))
    return features


def _learn(
    policy: LightPolicy, key: int, slate: Slate, choice: Choice, reward: float, descent: tuple[int, int] | None = None
) -> None:
    nothing_agrees = np.zeros(len(slate)) if reward else None
    policy.update([shown_outcome(key, slate, choice, reward, nothing_agrees, descent)])


def _play(
    chance: Callable[[int, Floats, np.ndarray, int], Floats], *, seed: int, tasks: int = TASKS, own: int = 30
) -> list[float]:
    """Play a stream; return for each task how much likelier success was with the best case of the starting order."""
    policy, rng, behind = LightPolicy(len(START), start=START), np.random.default_rng(seed), list[float]()
    for key in range(tasks):
        kind = int(rng.integers(KINDS))
        features = _features(rng, 16)
        features[:, 2] *= 0.5 + kind / KINDS  # a signal that says more where tasks are easy
        features[:, 5:] = 0.0  # opening and closing
        features = features[np.argsort(-features[:, 0])]
        groups = own * kind + rng.permutation(own)[:16]
        slate = Slate(features=features, similarity=np.linspace(0.9, 0.5, 16), groups=groups, query=_task(kind, rng))
        choice = policy.select(slate, 1, abstain=False, seed=key)
        chances = chance(key, features, groups, kind)
        behind.append(float(chances[0] - chances[choice.chosen[0]]))
        _learn(policy, key, slate, choice, float(rng.random() < chances[choice.chosen[0]]))
    return behind


@pytest.mark.slow
def test_with_nothing_to_learn_and_tasks_of_confounded_difficulty_it_stays_with_the_starting_order():
    """Cases differ by what the starting order knows. Tasks differ in difficulty, and in how far a useless signal spreads."""

    def chance(key: int, features: Floats, groups: np.ndarray, kind: int) -> Floats:
        del key, groups
        return np.clip(0.1 + 0.8 * kind / KINDS + 0.03 * (features @ START - (features @ START).max()), 0.02, 0.98)

    lost = [np.mean(_play(chance, seed=seed, own=3_000)) for seed in range(3)]
    assert 100 * np.mean(lost) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_it_finds_the_cases_that_work_for_each_kind_of_task(seed: int):
    def chance(key: int, features: Floats, groups: np.ndarray, kind: int) -> Floats:
        del key, features, kind
        return np.where(groups % 3 == 0, 0.9, 0.3)

    gained = -np.asarray(_play(chance, seed=seed, tasks=600))
    assert gained[-200:].mean() > 0.15  # a case that is chosen at random is right for a third of the tasks


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_half_of_what_was_learned_is_unlearned_within_200_episodes(seed: int):
    """The signal that told what works turns around after 300 tasks."""

    def chance(key: int, features: Floats, groups: np.ndarray, kind: int) -> Floats:
        del groups, kind
        turned = 1.0 if key < 300 else -1.0
        return np.clip(0.5 + 0.2 * turned * features[:, 3], 0.05, 0.95)

    gained = -np.asarray(_play(chance, seed=seed, tasks=560, own=3_000))
    before, after = gained[200:300].mean(), gained[300:340].mean()
    assert before > 0.15
    assert after < -0.15  # what was learned does harm now
    assert gained[500:].mean() > 0.5 * after  # and does less than half of it


def test_the_record_of_a_case_is_that_of_what_was_made_from_it():
    policy, rng = LightPolicy(len(START), start=START), np.random.default_rng(0)
    good, bad, child = 1, 2, 3
    features = np.zeros((2, len(START)))
    for key in range(40):
        slate = Slate(features=features, similarity=np.full(2, 0.8), groups=np.array([good, bad]), query=_task(0, rng))
        choice = policy.select(slate, 1, abstain=False, seed=key)
        won = int(choice.chosen[0]) == 0
        _learn(policy, key, slate, choice, float(won), (child, good) if won else None)
    slate = Slate(features=features, similarity=np.full(2, 0.8), groups=np.array([bad, child]), query=_task(0, rng))
    choice = policy.select(slate, 1, abstain=False, seed=0)
    assert choice.chosen.tolist() == [1]
    assert choice.standing is not None
    assert choice.standing[1, 2] > 0.3  # of a case that was never shown itself
    elsewhere = Slate(features=features, similarity=np.full(2, 0.8), groups=np.array([bad, child]), query=_task(5, rng))
    assert abs(policy.select(elsewhere, 1, abstain=False, seed=0).value[1]) < 0.5


def test_a_success_whose_solution_nobody_had_counts_for_the_shown_case_where_none_ever_recurs():
    """Solutions are texts that all differ, so that no candidate agrees: that does not say that the shown case was wrong."""

    def values(agreement: np.ndarray | None) -> Floats:
        policy, rng = LightPolicy(len(START), start=START), np.random.default_rng(0)
        for key in range(30):
            features = _features(rng, 4)
            slate = Slate(features=features, similarity=rng.random(4), groups=np.arange(4) + 4 * key, query=_task(0, rng))
            choice = policy.select(slate, 1, abstain=False, seed=key)
            policy.update([shown_outcome(key, slate, choice, float(key % 4 > 0), agreement if key % 4 else None)])
        slate = Slate(features=features, similarity=rng.random(4), groups=np.arange(4), query=_task(0, rng))
        return policy.select(slate, 1, abstain=False, seed=0).utility

    different, unknown = values(np.zeros(4)), values(np.full(4, np.nan))
    assert unknown.max() > 0.4
    assert different.max() > unknown.max() - 0.1


def test_where_solutions_recur_hindsight_teaches_and_bare_rewards_do_not():
    policy, rng = LightPolicy(len(START), start=START), np.random.default_rng(0)
    for key in range(60):
        features = _features(rng, 8)
        slate = Slate(features=features, similarity=rng.random(8), groups=np.arange(8), query=_task(0, rng))
        choice = policy.select(slate, 1, abstain=False, seed=key)
        right = int(features[:, 1].argmax())
        won = int(choice.chosen[0]) == right
        agreement = np.eye(8)[right] if won else None
        policy.update([shown_outcome(key, slate, choice, float(won), agreement)])
    assert policy.process.fitted is None
    np.testing.assert_array_equal(policy.weights, policy.head.posterior.mean)
