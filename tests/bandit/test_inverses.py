"""Sherman-Morrison and Cholesky compute the same norm."""

from __future__ import annotations

import numpy as np
import pytest

from cascade_memory.bandit.linear_models import Cholesky, ShermanMorrison, solve_lower


@pytest.mark.parametrize("form", [Cholesky, ShermanMorrison])
def test_the_norm_under_the_inverse_by_hand(form):
    # A = [[3, 1], [1, 2]], det 5, A^-1 = [[2, -1], [-1, 3]] / 5; x = (1, 2): x'A^-1x = (2 - 2 - 2 + 12) / 5 = 2.
    # Grown by u = (1, 1): u'A^-1u = (2 - 1 - 1 + 3) / 5 = 3/5, x'A^-1u = (1, 2) . (1, 2) / 5 = 1,
    # so by Sherman and Morrison x'(A + uu')^-1x = 2 - 1^2 / (1 + 3/5) = 2 - 5/8 = 1.375.
    matrix, u, x = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, 1.0]), np.array([[1.0, 2.0]])
    inverse = form.of(matrix)
    assert inverse.quadratic(x)[0] == pytest.approx(2.0)
    assert inverse.grown(u, 1.0, matrix + np.outer(u, u)).quadratic(x)[0] == pytest.approx(1.375)


@pytest.mark.parametrize("dimension", [192, pytest.param(768, marks=pytest.mark.long)])
def test_both_agree_after_many_updates(dimension: int):
    rng = np.random.default_rng(0)
    basis, precision = rng.normal(size=(dimension, 32)), 0.1 * np.eye(dimension)
    inverse = ShermanMorrison.of(precision)
    for _ in range(600):  # the 512th inverts afresh; 10,000 of them: examples/benchmarks/posterior.py
        x = basis @ rng.normal(size=32) + 0.1 * rng.normal(size=dimension)
        precision += np.outer(x, x)
        inverse = inverse.grown(x, 1.0, precision)
    rows = rng.normal(size=(32, dimension))
    np.testing.assert_allclose(inverse.quadratic(rows), Cholesky.of(precision).quadratic(rows), rtol=1e-6)


def test_forward_substitution_across_blocks():
    rng = np.random.default_rng(0)
    lower, right = np.tril(rng.normal(size=(150, 150))) + 20 * np.eye(150), rng.normal(size=(150, 3))
    np.testing.assert_allclose(lower @ solve_lower(lower, right), right, atol=1e-12)


@pytest.mark.parametrize("form", [Cholesky, ShermanMorrison])
def test_draws_have_the_inverse_as_their_covariance(form):
    matrix, rng = np.array([[3.0, 1.0], [1.0, 2.0]]), np.random.default_rng(0)
    inverse = form.of(matrix)
    draws = np.array([inverse.sampled(rng.normal(size=2)) for _ in range(20_000)])
    np.testing.assert_allclose(np.cov(draws.T), np.linalg.inv(matrix), atol=0.02)
