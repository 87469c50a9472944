from __future__ import annotations

import numpy as np
import pytest

from cascade_memory.bandit.case_value import CaseValue
from cascade_memory.bandit.linear_models import fit_logistic, sigmoid

LIKELY, UNLIKELY = np.array([1.0, 2.0, 0.0, 0.0]), np.array([1.0, -2.0, 0.0, 0.0])


def _value() -> CaseValue:
    return CaseValue(np.array([0.0, 1.0, 0.0, -16.0]))


def test_the_prediction_is_the_mixture_of_fitting_and_not_fitting():
    # Untouched: q = sigma(2), s1 = 32 / 36, b = 1/2, s0 = 0.75 b = 0.375.
    prediction = _value().predict(LIKELY)
    q = 1 / (1 + np.exp(-2.0))
    assert float(prediction.fit) == pytest.approx(q)
    assert float(prediction.utility) == pytest.approx(q * 32 / 36 + (1 - q) * 0.375)
    assert prediction.baseline == 0.5


def test_each_rate_is_counted_where_everything_is_known():
    # 6 of 8 without a case; with one: 10 fitting successes, 5 successes of a misfit. Nothing is left to guess but failures.
    value = _value()
    value.DISCOUNT = 1.0  # type: ignore[misc]
    for i in range(8):
        value.observe(None, shown=False, reward=float(i < 6), fitted=None, weight=1.0)
    for i in range(16):
        value.observe(LIKELY, shown=True, reward=1.0, fitted=float(i < 11), weight=1.0)
    prediction = value.predict(LIKELY)
    assert prediction.baseline == pytest.approx((1 + 6) / (2 + 8))
    assert float(value.predict(np.array([1.0, 1e3, 0.0, 0.0])).utility) == pytest.approx((32 + 11) / (36 + 11))
    misfit = 8 * 0.75 * 0.7
    assert float(value.predict(np.array([1.0, -1e3, 0.0, 0.0])).utility) == pytest.approx((misfit + 5) / (8 + 5))


def test_a_ranking_that_is_sure_of_itself_and_wrong_is_seen_through():
    value, rng = _value(), np.random.default_rng(0)
    sure = np.array([1.0, 4.0, 0.0, 0.0])
    assert float(value.predict(sure).utility) > 0.8
    for _ in range(200):
        won = rng.random() < 0.2
        value.observe(sure, shown=True, reward=float(won), fitted=0.0 if won else None, weight=1.0)
    assert float(value.predict(sure).utility) == pytest.approx(0.2, abs=0.06)


def _play(value: CaseValue, *, fits: float, misfit_success: float, alone: float, n: int, seed: int = 0) -> list[bool]:
    rng, shown = np.random.default_rng(seed), []
    for _ in range(n):
        show = value.worth_showing(LIKELY, rng)
        fitted = rng.random() < fits
        success = rng.random() < ((0.97 if fitted else misfit_success) if show else alone)
        value.observe(LIKELY, shown=show, reward=float(success), fitted=float(fitted) if success else None, weight=1.0)
        shown.append(show)
    return shown


def test_learns_to_show_nothing_where_cases_mislead():
    assert np.mean(_play(_value(), fits=0.02, misfit_success=0.2, alone=0.5, n=400)[-100:]) < 0.1


def test_learns_to_show_where_cases_help_although_it_began_by_hiding_them():
    value = _value()
    _play(value, fits=0.02, misfit_success=0.2, alone=0.5, n=300)
    assert np.mean(_play(value, fits=0.95, misfit_success=0.2, alone=0.5, n=600, seed=1)[-100:]) > 0.9


def test_recurring_or_not_where_nothing_can_be_compared_rewards_alone_decide():
    def play(success: float) -> float:
        value, rng, shown = _value(), np.random.default_rng(0), []
        for _ in range(400):
            show = value.worth_showing(LIKELY, rng)
            won = float(rng.random() < (success if show else 0.5))
            value.observe(LIKELY, shown=show, reward=won, fitted=None, weight=1.0)
            shown.append(show)
        return float(np.mean(shown[-100:]))

    assert play(0.9) > 0.9
    assert play(0.1) < 0.2


def test_old_evidence_fades_and_the_window_is_bounded():
    value = _value()
    for reward in (1.0, 0.0):
        for _ in range(3 * value.WINDOW // 2):
            value.observe(None, shown=False, reward=reward, fitted=None, weight=1.0)
    assert value.predict(LIKELY).baseline < 0.05
    assert len(value.state()["rows"]) <= value.WINDOW


def test_half_an_episode_counts_half():
    whole, halves = _value(), _value()
    for value, weight, n in ((whole, 1.0, 8), (halves, 0.5, 16)):
        value.DISCOUNT = 1.0  # type: ignore[misc]
        for _ in range(n):
            value.observe(None, shown=False, reward=1.0, fitted=None, weight=weight)
    assert whole.predict(LIKELY).baseline == pytest.approx(halves.predict(LIKELY).baseline)


def test_what_was_learned_travels_with_what_is_not_yet_fitted():
    value, copy = _value(), _value()
    _play(value, fits=0.7, misfit_success=0.2, alone=0.5, n=101)
    copy.load(value.state())
    for each in (value, copy):
        _play(each, fits=0.7, misfit_success=0.2, alone=0.5, n=30, seed=5)
    assert float(copy.predict(LIKELY).utility) == pytest.approx(float(value.predict(LIKELY).utility), abs=1e-3)


def test_logistic_regression_finds_the_mode_of_its_posterior():
    rng = np.random.default_rng(0)
    inputs = np.column_stack([np.ones(200), rng.normal(size=200)])
    labels = (rng.random(200) < sigmoid(inputs @ np.array([-1.0, 2.0]))).astype(float)
    importance, prior = rng.random(200), np.array([0.0, 1.0])
    weights = fit_logistic(inputs, labels, importance, start=prior, prior=prior, precision=0.5, steps=30)
    gradient = inputs.T @ (importance * (sigmoid(inputs @ weights) - labels)) + 0.5 * (weights - prior)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


def test_logistic_regression_of_nothing_is_its_prior():
    prior = np.array([0.5, -1.0])
    weights = fit_logistic(np.zeros((0, 2)), np.zeros(0), np.zeros(0), start=prior, prior=prior, precision=1.0)
    np.testing.assert_array_equal(weights, prior)


def test_a_new_memory_decides_by_expectation_whatever_the_draw():
    value = _value()
    assert all(value.worth_showing(LIKELY, np.random.default_rng(seed)) for seed in range(50))
    assert not any(value.worth_showing(np.array([1.0, -6.0, 0.0, 0.0]), np.random.default_rng(seed)) for seed in range(50))


@pytest.mark.slow
def test_where_nothing_tells_what_an_unshown_case_would_have_done_it_is_put_to_the_test_again():
    # Nothing fits for 40 episodes, everything afterwards: without hindsight only showing can find that out.
    recovered = 0
    for seed in range(10):
        value, rng, shown = _value(), np.random.default_rng(seed), []
        for i in range(640):
            show = value.worth_showing(LIKELY, rng)
            success = rng.random() < ((0.97 if i >= 40 else 0.1) if show else 0.6)
            value.observe(LIKELY, shown=show, reward=float(success), fitted=None, weight=1.0)
            shown.append(show)
        recovered += sum(shown[-100:]) >= 80
    assert recovered >= 7  # drawing the rates alone: 5 and fewer


def test_what_may_be_unrelated_is_not_shown_until_outcomes_say_that_it_helps():
    value, unrelated = _value(), np.array([1.0, 3.9, -2.5, 1.0])
    assert not value.worth_showing(unrelated, np.random.default_rng(0))
    assert not value.unrelated_help
    value.observe(unrelated, shown=False, reward=1.0, fitted=0.0, weight=1.0)
    assert not value.worth_showing(unrelated, np.random.default_rng(0))
    for _ in range(6):
        value.observe(unrelated, shown=False, reward=1.0, fitted=1.0, weight=1.0)
    value.observe(None, shown=False, reward=0.0, fitted=None, weight=8.0)
    assert value.worth_showing(unrelated, np.random.default_rng(0))
    assert value.unrelated_help
