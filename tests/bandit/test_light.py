from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.bandit.light import LightPolicy
from cascade_memory.ports.policy import Choice, Feedback, Slate
from cascade_memory.testing.policy import random_slate, shown_outcome


def _feed(policy: LightPolicy, key: int, slate: Slate, choice: Choice, reward: float, agreement: np.ndarray | None) -> None:
    policy.update([shown_outcome(key, slate, choice, reward, agreement)])


def _learn(policy: LightPolicy, n: int, telling: int = 1, seed: int = 0) -> None:
    """Feed successes in which the candidate with the highest ``telling`` feature has the verified solution."""
    rng = np.random.default_rng(seed)
    for key in range(n):
        features = rng.normal(size=(8, 3))
        slate = Slate(features=features, similarity=features[:, 0], groups=np.arange(8))
        choice = policy.select(slate, 1, abstain=False, seed=key)
        right = int(features[:, telling].argmax())
        won = int(choice.chosen[0]) == right
        _feed(policy, key, slate, choice, 1.0, np.eye(8)[right] if won or rng.random() < 0.5 else None)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(0, 10_000))
def test_untrained_the_order_is_the_similarity_order(n: int, seed: int):
    slate = random_slate(n, 5, seed)
    choice = LightPolicy(5).select(slate, n, abstain=False, seed=0)
    np.testing.assert_array_equal(choice.chosen, np.arange(n))


def test_hindsight_teaches_which_feature_tells():
    policy = LightPolicy(3)
    _learn(policy, 200)
    rng, right = np.random.default_rng(99), 0
    for _ in range(100):
        features = rng.normal(size=(8, 3))
        slate = Slate(features=features, similarity=features[:, 0], groups=np.arange(8))
        right += int(policy.select(slate, 1, abstain=False, seed=0).chosen[0]) == int(features[:, 1].argmax())
    assert right > 80


def test_a_failure_with_a_case_that_is_forgotten_says_nothing_about_doing_without_one():
    """Such an outcome has lost all its candidates, and looks else like one from an empty memory."""
    policy, slate = LightPolicy(3), random_slate(8, 3)
    empty = Slate(features=np.zeros((0, 3)), similarity=np.zeros(0), groups=np.zeros(0, np.int64))
    before = policy.select(slate, 1, abstain=True, seed=0).baseline
    for shown in (True, False):
        lost = [
            Feedback(
                key=key,
                slate=empty,
                chosen=np.zeros(0, np.int64),
                context=np.zeros(0),
                shown=shown,
                reward=0.0,
                agreement=None,
            )
            for key in range(20)
        ]
        policy.update(lost)
        assert (policy.select(slate, 1, abstain=True, seed=0).baseline == before) is shown


def test_it_explores_only_after_enough_rewards():
    policy = LightPolicy(3, exploration=UpperConfidence(alpha=100.0, burn_in=16))
    slate = random_slate(8, 3)
    _learn(policy, 15)
    choice = policy.select(slate, 1, abstain=False, seed=0)
    np.testing.assert_array_equal(choice.score, choice.value)
    _learn(policy, 10, seed=1)
    choice = policy.select(slate, 1, abstain=False, seed=0)
    assert (choice.score > choice.value).any()


def test_open_episodes_narrow_the_uncertainty_of_what_they_chose():
    policy = LightPolicy(3)
    slate = random_slate(8, 3)
    before = policy.select(slate, 1, abstain=False, seed=0)
    for key in range(50):
        policy.expect(key, slate, before)
    after = policy.select(slate, 1, abstain=False, seed=0)
    assert after.uncertainty[before.chosen[0]] < before.uncertainty[before.chosen[0]]
    for key in range(50):
        policy.withdraw(key)
    np.testing.assert_allclose(policy.select(slate, 1, abstain=False, seed=0).uncertainty, before.uncertainty, atol=1e-9)


def test_agreeing_candidates_add_up_when_it_decides_whether_one_fits():
    features, similarity = np.zeros((4, 3)), np.full(4, 0.6)
    alone = LightPolicy(3).select(
        Slate(features=features, similarity=similarity, groups=np.arange(4)), 1, abstain=False, seed=0
    )
    together = LightPolicy(3).select(
        Slate(features=features, similarity=similarity, groups=np.zeros(4, np.int64)), 1, abstain=False, seed=0
    )
    assert together.utility[0] > alone.utility[0]


def test_what_another_ranker_logged_teaches_nothing_and_harms_nothing():
    policy = LightPolicy(3)
    slate = random_slate(8, 1)
    policy.update(
        [
            Feedback(
                key=1,
                slate=slate,
                chosen=np.array([0]),
                context=np.zeros(0),
                shown=True,
                reward=1.0,
                agreement=np.eye(8)[0],
            )
        ]
    )
    assert policy.rewards == 0
    np.testing.assert_array_equal(policy.head.posterior.mean, [2.0, 0.0, 0.0])


def test_what_an_older_one_logged_with_fewer_features_still_teaches():
    older, newer = LightPolicy(2), LightPolicy(3)
    for key in range(16):
        slate = random_slate(8, 2, key)
        choice = older.select(slate, 1, abstain=False, seed=key)
        for policy in (older, newer):
            _feed(policy, key, slate, choice, 1.0, np.eye(8)[int(np.argmax(slate.features[:, 1]))])
    assert newer.rewards == 16
    np.testing.assert_allclose(newer.head.posterior.mean, [*older.head.posterior.mean, 0.0], atol=1e-9)


def test_where_solutions_cannot_be_compared_it_learns_from_rewards_alone():
    policy, rng = LightPolicy(3), np.random.default_rng(0)
    for key in range(400):
        features = rng.normal(size=(8, 3))
        slate = Slate(features=features, similarity=rng.random(8), groups=np.arange(8))
        choice = policy.select(slate, 1, abstain=False, seed=key)
        won = float(features[choice.chosen[0], 1] > 0)
        unknown = np.full(8, np.nan) if won else None
        _feed(policy, key, slate, choice, won, unknown)
    assert policy.weights[1] > 0.5


def test_selecting_while_learning_never_sees_half_an_update():
    policy, failures, stop = LightPolicy(3), [], threading.Event()

    def read() -> None:
        slate = random_slate(8, 3)
        while not stop.is_set():
            try:
                choice = policy.select(slate, 1, abstain=True, seed=0)
                policy.expect(1_000_000 + threading.get_ident(), slate, choice)
                policy.withdraw(1_000_000 + threading.get_ident())
                assert np.isfinite(choice.score).all()
            except Exception as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    _learn(policy, 150)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.slow
def test_where_solutions_never_recur_difference_is_no_disagreement_and_useful_cases_are_shown():
    """Free text: every solution is new, and a similar case helps all the same."""
    policy, rng, shown = LightPolicy(3), np.random.default_rng(0), []
    for key in range(600):
        features = rng.normal(size=(8, 3))
        similarity = np.sort(rng.random(8))[::-1]
        features[:, 0] = (similarity - similarity.mean()) / similarity.std()
        slate = Slate(features=features, similarity=similarity, groups=np.arange(8) + 100 * key)
        choice = policy.select(slate, 1, abstain=True, seed=key)
        won = float(rng.random() < (0.4 if choice.abstained else 0.8))
        policy.update(
            [
                Feedback(
                    key=key,
                    slate=slate,
                    chosen=choice.chosen,
                    context=choice.context,
                    shown=not choice.abstained,
                    reward=won,
                    agreement=np.zeros(8) if won else None,
                )
            ]
        )
        shown.append(not choice.abstained)
    assert np.mean(shown[-100:]) > 0.95


def test_rewards_without_a_verified_solution_teach_the_order():
    # Success depends on the second feature of what was shown; nobody ever says what the solution was.
    policy, rng, won = LightPolicy(3), np.random.default_rng(0), []
    for key in range(600):
        features = rng.normal(size=(8, 3))
        slate = Slate(features=features, similarity=features[:, 0], groups=np.arange(8))
        choice = policy.select(slate, 1, abstain=False, seed=key)
        success = rng.random() < 1 / (1 + np.exp(-3.0 * features[choice.chosen[0], 1]))
        won.append(success)
        _feed(policy, key, slate, choice, float(success), None)
    assert policy.weights[1] > 0.5
    assert np.mean(won[-150:]) > 0.9  # the similarity order succeeds half of the time
