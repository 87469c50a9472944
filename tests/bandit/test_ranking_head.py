from __future__ import annotations

import numpy as np
import pytest

from cascade_memory.bandit.ranking_head import Problem, RankingHead


def _problem(seed: int = 0, n: int = 6, *, bandit: bool = True) -> Problem:
    rng = np.random.default_rng(seed)
    hindsight = []
    for _ in range(n):
        k = int(rng.integers(2, 6))
        agreement = np.zeros(k)
        agreement[rng.integers(k)] = 1.0
        hindsight.append((rng.normal(size=(k, 3)), agreement, float(rng.random() + 0.5)))
    rewarded = [(rng.normal(size=3), float(rng.random() < 0.5), 1.0) for _ in range(n if bandit else 0)]
    return Problem(hindsight, rewarded, np.array([1.0, 0.0, 0.0]), 0.7, (0.2, 0.9))


def test_the_gradient_is_the_derivative_of_the_loss():
    problem, point, step = _problem(), np.array([0.4, -1.0, 0.3, 0.2]), 1e-6
    numeric = [
        (problem.loss(point + step * direction) - problem.loss(point - step * direction)) / (2 * step)
        for direction in np.eye(4)
    ]
    np.testing.assert_allclose(problem.gradient(point), numeric, rtol=1e-5, atol=1e-7)


def test_with_one_agreeing_candidate_each_the_curvature_is_the_derivative_of_the_gradient():
    # Then the agreeing part of the likelihood is linear in theta, and leaving its curvature out leaves nothing out.
    problem, point, step = _problem(bandit=False), np.array([0.4, -1.0, 0.3, 0.2]), 1e-5
    numeric = [
        (problem.gradient(point + step * direction) - problem.gradient(point - step * direction)) / (2 * step)
        for direction in np.eye(4)
    ]
    np.testing.assert_allclose(problem.curvature(point), numeric, rtol=1e-4, atol=1e-6)


def test_the_information_of_a_reward_is_the_expected_square_of_its_slope():
    # P = 0.2 + 0.7 sigma(0) = 0.55 with slope 0.7 / 4 along the (uncentred) intercept; 0.1 is the intercept's prior.
    problem = Problem([], [(np.zeros(1), 1.0, 1.0)], np.zeros(1), 1.0, (0.2, 0.9))
    assert problem.curvature(np.zeros(2))[1, 1] == pytest.approx(0.1 + 0.175**2 / (0.55 * 0.45))


def test_the_loss_of_a_recall_is_minus_the_log_of_the_share_of_the_agreeing():
    # Logits ln 3 and 0: shares 3/4 and 1/4. The second agrees: loss = ln 4, plus the prior's 0.5 * 1 * |theta|^2.
    problem = Problem([(np.array([[1.0], [0.0]]), np.array([0.0, 1.0]), 1.0)], [], np.zeros(1), 1.0, (0.0, 1.0))
    theta = np.log(3.0)
    assert problem.loss(np.array([theta, 0.0])) == pytest.approx(np.log(4.0) + 0.5 * theta**2)


def test_untrained_it_is_its_prior_and_training_finds_the_column_that_tells():
    head = RankingHead(np.array([2.0, 0.0]), precision=1.0)
    np.testing.assert_array_equal(head.posterior.mean, [2.0, 0.0])
    rng = np.random.default_rng(0)
    for _ in range(100):
        features = rng.normal(size=(8, 2))
        agreement = np.zeros(8)
        agreement[features[:, 1].argmax()] = 1.0
        head.add_hindsight(features, agreement, 1.0)
    for _ in range(10):
        head.fit()
    assert head.posterior.mean[1] > 3 * abs(head.posterior.mean[0])


def test_a_recall_in_which_all_or_none_agree_says_nothing():
    head = RankingHead(np.array([2.0]), precision=1.0)
    head.add_hindsight(np.ones((3, 1)), np.ones(3), 1.0)
    head.add_hindsight(np.ones((3, 1)), np.zeros(3), 1.0)
    head.fit()
    np.testing.assert_array_equal(head.posterior.mean, [2.0])


def test_the_window_is_bounded_and_old_evidence_leaves_it():
    head = RankingHead(np.zeros(1), precision=0.1, window=20)
    for sign in (1.0, -1.0):
        for _ in range(50):
            head.add_hindsight(np.array([[sign], [-sign]]), np.array([1.0, 0.0]), 1.0)
    for _ in range(20):
        head.fit()
    assert head.posterior.mean[0] < -1.0
    assert len(head.state()["sizes"]) == 20


def test_rewards_of_chosen_pairs_teach_the_order():
    head = RankingHead(np.zeros(2), precision=1.0)
    rng = np.random.default_rng(1)
    for _ in range(200):
        x = rng.normal(size=2)
        head.add_bandit(x, float(x[1] > 0), 1.0)
    for _ in range(5):
        head.fit()
    assert head.posterior.mean[1] > 1.0
    assert abs(head.posterior.mean[0]) < 0.3


def test_the_intercept_takes_up_the_base_rate_of_success():
    # Success always (or never), whatever the feature, and the chosen one always stands out: theta must stay where it was.
    for reward in (0.0, 1.0):
        head = RankingHead(np.array([2.0]), precision=1.0)
        rng = np.random.default_rng(1)
        for _ in range(200):
            head.add_bandit(2.5 + rng.normal(size=1) * 0.1, reward, 1.0)
        for _ in range(5):
            head.fit()
        assert head.posterior.mean[0] == pytest.approx(2.0, abs=0.2)


def test_successes_without_a_fitting_case_do_not_tear_the_order_down():
    # A third of the tasks succeeds with any case at all: only what lies above that speaks of the case.
    rng = np.random.default_rng(2)
    heads = {rates: RankingHead(np.array([2.0]), precision=1.0) for rates in ((0.0, 1.0), (0.33, 0.95))}
    for _ in range(300):
        x = rng.normal(size=1)
        success = rng.random() < 0.33 + 0.62 / (1 + np.exp(-2.0 * float(x[0])))
        for head in heads.values():
            head.add_bandit(x, float(success), 1.0)
    for rates, head in heads.items():
        for _ in range(5):
            head.fit(rates=rates)
    plain, mixed = (float(head.posterior.mean[0]) for head in heads.values())
    assert mixed == pytest.approx(2.0, abs=0.7)
    assert plain < 1.5


def test_the_posterior_narrows_along_what_was_seen():
    head = RankingHead(np.zeros(2), precision=1.0)
    for i in range(60):
        head.add_hindsight(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([i % 2, 1 - i % 2], float), 1.0)
    head.fit()
    seen, unseen = head.posterior.uncertainty(np.eye(2))
    assert seen < 0.5 * unseen


def test_extreme_features_neither_overflow_nor_diverge():
    head = RankingHead(np.array([2.0, 0.0]), precision=1.0)
    rng = np.random.default_rng(0)
    for _ in range(64):
        head.add_hindsight(rng.normal(size=(32, 2)) * 50, rng.permutation(np.eye(1, 32)[0]), 1.0)
        head.fit()
    assert np.isfinite(head.posterior.mean).all()
    assert np.isfinite(head.posterior.uncertainty(np.eye(2))).all()
