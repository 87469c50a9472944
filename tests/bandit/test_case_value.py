from __future__ import annotations

import numpy as np
import pytest

from cascade_memory.bandit.case_value import CaseValue
from cascade_memory.bandit.logistic import LogisticRegression, sigmoid
from cascade_memory.bandit.success_rates import SuccessRate

LIKELY, UNLIKELY = np.array([1.0, 2.0, 0.0]), np.array([1.0, -2.0, 0.0])


def _value() -> CaseValue:
    return CaseValue(np.array([0.0, 1.0, 0.0]))


def test_the_prediction_is_the_mixture_of_fitting_and_not_fitting():
    # Untouched: q = sigma(2), s1 = 4 / 4.5, b = 1/2, s0 = 0.75 b = 0.375.
    prediction = _value().predict(LIKELY)
    q = 1 / (1 + np.exp(-2.0))
    assert float(prediction.fit) == pytest.approx(q)
    assert float(prediction.utility) == pytest.approx(q * 4 / 4.5 + (1 - q) * 0.375)
    assert prediction.baseline == 0.5


def test_failures_are_shared_between_fitting_and_not_by_bayes():
    value = _value()
    q, s1, s0 = float(sigmoid(np.array(2.0))), 4 / 4.5, 0.375
    value.observe_shown(LIKELY, 0.0, None, 1.0)
    fitting = q * (1 - s1) / (q * (1 - s1) + (1 - q) * (1 - s0))
    assert value.fitting.counts[1] == pytest.approx(fitting)
    assert value.unfitting.counts[1] == pytest.approx(1 - fitting)


def _play(value: CaseValue, *, fits: float, misfit_success: float, alone: float, n: int, seed: int = 0) -> list[bool]:
    rng, shown = np.random.default_rng(seed), []
    for _ in range(n):
        show = value.worth_showing(LIKELY, rng)
        fitted = rng.random() < fits
        success = rng.random() < ((0.97 if fitted else misfit_success) if show else alone)
        if show:
            value.observe_shown(LIKELY, float(success), float(fitted) if success else None, 1.0)
        else:
            value.observe_without(float(success), 1.0)
            if success:
                value.observe_fit(LIKELY, float(fitted), 1.0)
        shown.append(show)
    return shown


def test_learns_to_show_nothing_where_cases_mislead():
    shown = _play(_value(), fits=0.02, misfit_success=0.2, alone=0.5, n=400)
    assert np.mean(shown[-100:]) < 0.1


def test_learns_to_show_where_cases_help_although_it_began_by_hiding_them():
    value = _value()
    _play(value, fits=0.02, misfit_success=0.2, alone=0.5, n=300)
    shown = _play(value, fits=0.95, misfit_success=0.2, alone=0.5, n=600, seed=1)
    assert np.mean(shown[-100:]) > 0.9


def test_old_evidence_fades():
    rate = SuccessRate(1.0, 1.0, discount=0.5)
    rate.observe(8.0, 0.0)
    for _ in range(10):
        rate.fade()
    assert rate.mean == pytest.approx(0.5, abs=0.01)


def test_what_was_learned_travels():
    value, copy = _value(), _value()
    _play(value, fits=0.7, misfit_success=0.2, alone=0.5, n=100)
    copy.load(value.state())
    for context in (LIKELY, UNLIKELY):
        assert float(copy.predict(context).utility) == pytest.approx(float(value.predict(context).utility))


def test_logistic_regression_finds_the_mode_of_its_posterior():
    rng = np.random.default_rng(0)
    inputs = np.column_stack([np.ones(200), rng.normal(size=200)])
    labels = (rng.random(200) < sigmoid(inputs @ np.array([-1.0, 2.0]))).astype(float)
    model = LogisticRegression(np.array([0.0, 1.0]), precision=0.5, window=500)
    for row, label in zip(inputs, labels, strict=True):
        model.add(row, label)
    model.fit(steps=30)
    gradient = inputs.T @ (sigmoid(inputs @ model.weights) - labels) + 0.5 * (model.weights - np.array([0.0, 1.0]))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


def test_logistic_regression_forgets_what_left_its_window():
    model = LogisticRegression(np.zeros(1), precision=1.0, window=10)
    for label in (1.0, 0.0):
        for _ in range(10):
            model.add(np.ones(1), label)
    model.fit(steps=20)
    assert float(model.predict(np.ones(1))) < 0.3


def test_fitting_nothing_is_no_error():
    model = LogisticRegression(np.array([0.5]), precision=1.0, window=4)
    model.fit()
    assert model.weights.tolist() == [0.5]
