"""A control is tested as a control: uniform really is uniform, similarity really is the cosine."""

from __future__ import annotations

import numpy as np

from cascade_memory.bandit.similarity import SimilarityPolicy, UniformPolicy
from cascade_memory.testing.policy import random_slate


def test_uniform_draws_every_candidate_equally_often():
    policy, slate, n = UniformPolicy(), random_slate(8, 0), 8_000
    counts = np.bincount([policy.select(slate, 1, abstain=False, seed=seed).chosen[0] for seed in range(n)], minlength=8)
    chi_square = float((((counts - n / 8) ** 2) / (n / 8)).sum())
    assert chi_square < 24.3  # 99.9 % point with 7 degrees of freedom


def test_uniform_logs_the_propensity_it_draws_with():
    choice = UniformPolicy().select(random_slate(8, 0), 3, abstain=False, seed=0)
    np.testing.assert_allclose(choice.propensity, 3 / 8)


def test_similarity_is_the_cosine_order_and_never_abstains():
    slate = random_slate(30, 3, seed=4)
    choice = SimilarityPolicy().select(slate, 30, abstain=True, seed=0)
    np.testing.assert_array_equal(choice.chosen, np.argsort(-slate.similarity, kind="stable"))
    assert not choice.abstained
