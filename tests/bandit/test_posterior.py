from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade_memory.bandit.exploration import UpperConfidence
from cascade_memory.bandit.linear_models import Posterior


def test_uncertainty_is_the_norm_under_the_inverse_precision():
    # A = [[3, 1], [1, 2]], det 5, A^-1 = [[2, -1], [-1, 3]] / 5; x = (1, 2): x'A^-1x = (2 - 2 - 2 + 12) / 5 = 2.
    posterior = Posterior(np.zeros(2), np.array([[3.0, 1.0], [1.0, 2.0]]))
    assert posterior.uncertainty(np.array([[1.0, 2.0]]))[0] == pytest.approx(np.sqrt(2.0))


def test_observing_is_the_rank_one_update_of_sherman_and_morrison():
    # From A = 2I, observing x = (1, 1): A = [[3, 1], [1, 3]], A^-1 = [[3, -1], [-1, 3]] / 8; x'A^-1x = 4 / 8.
    posterior = Posterior.prior(np.zeros(2), precision=2.0).observe(np.array([1.0, 1.0]))
    np.testing.assert_allclose(posterior.precision, [[3.0, 1.0], [1.0, 3.0]])
    assert posterior.uncertainty(np.array([[1.0, 1.0]]))[0] == pytest.approx(np.sqrt(0.5))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30))
def test_many_rank_one_updates_agree_with_inverting_the_sum(seed: int, n: int):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4))
    posterior = Posterior.prior(np.zeros(4), precision=0.5)
    for row in rows:
        posterior = posterior.observe(row, weight=0.7)
    direct = Posterior(np.zeros(4), 0.5 * np.eye(4) + 0.7 * rows.T @ rows)
    np.testing.assert_allclose(posterior.uncertainty(rows), direct.uncertainty(rows), atol=1e-9)


def test_withdrawing_undoes_observing_and_neither_changes_the_original():
    prior = Posterior.prior(np.ones(3), precision=1.0)
    x = np.array([1.0, -2.0, 0.5])
    after = prior.observe(x, 2.0).withdraw(x, 2.0)
    np.testing.assert_allclose(after.precision, prior.precision, atol=1e-12)
    np.testing.assert_array_equal(prior.precision, np.eye(3))
    np.testing.assert_array_equal(after.mean, prior.mean)


def test_no_bonus_before_enough_rewards():
    explore = UpperConfidence(alpha=0.5, burn_in=16)
    assert explore.bonus(np.array([2.0]), rewards=15)[0] == 0.0
    assert explore.bonus(np.array([2.0]), rewards=16)[0] == 1.0
