from __future__ import annotations

import numpy as np
import pytest

from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
from cascade_memory.ports.policy import Feedback, Slate


def _slate(*features: tuple[float, float]) -> Slate:
    return Slate(features=np.array(features), similarity=np.linspace(0.9, 0.1, len(features)), groups=np.arange(len(features)))


def _feedback(policy: NeuralLinLogUCB, slate: Slate, reward: float, key: int = 1) -> Feedback:
    choice = policy.select(slate, 1, abstain=False, seed=0)
    policy.expect(key, slate, choice)
    return Feedback(
        key=key, slate=slate, chosen=choice.chosen, context=choice.context, shown=True, reward=reward, agreement=None
    )


def test_the_score_is_the_paper_s_upper_confidence_bound():
    # Eq. ucb with theta = (1, 0), A = lambda I = 0.25 I, alpha = 0.5: f = (0.3, 0.4) has |f| = 0.5,
    # ||f||_{A^-1} = 0.5 / sqrt(0.25) = 1, so the score is 0.3 + 0.5 * 1 = 0.8.
    policy = NeuralLinLogUCB(np.array([1.0, 0.0]), alpha=0.5, regularisation=0.25)
    assert policy.select(_slate((0.3, 0.4)), 1, abstain=False, seed=0).score[0] == pytest.approx(0.8)


def test_theta_moves_by_one_step_of_the_paper_s_gradient():
    # Eq. linear-grad with theta = (0, 0), f = (2, 1), r = 1, eta = 0.1: sigma(0) - 1 = -0.5, so theta = 0.05 f = (0.1, 0.05).
    policy = NeuralLinLogUCB(np.zeros(2), regularisation=0.1, learning_rate=0.1)
    policy.update([_feedback(policy, _slate((2.0, 1.0)), 1.0)])
    np.testing.assert_allclose(policy.state_dict()["theta"], [0.1, 0.05])


def test_the_regularisation_pulls_theta_towards_zero():
    # theta = (1, 0), f = (0, 0), lambda = 0.1, eta = 0.5: theta <- theta - 0.5 * 0.1 * theta = 0.95 theta.
    policy = NeuralLinLogUCB(np.array([1.0, 0.0]), regularisation=0.1, learning_rate=0.5)
    policy.update([_feedback(policy, _slate((0.0, 0.0)), 1.0)])
    np.testing.assert_allclose(policy.state_dict()["theta"], [0.95, 0.0])


def test_a_grows_by_the_chosen_pair_once_whether_or_not_it_was_expected():
    # A = lambda I + f f' with f = (2, 1): [[4.1, 2], [2, 1.1]].
    slate = _slate((2.0, 1.0))
    expected = NeuralLinLogUCB(np.zeros(2), regularisation=0.1)
    expected.update([_feedback(expected, slate, 1.0)])
    unexpected = NeuralLinLogUCB(np.zeros(2), regularisation=0.1)
    choice = unexpected.select(slate, 1, abstain=False, seed=0)
    unexpected.update(
        [Feedback(key=9, slate=slate, chosen=choice.chosen, context=choice.context, shown=True, reward=1.0, agreement=None)]
    )
    for policy in (expected, unexpected):
        np.testing.assert_allclose(policy.state_dict()["a"], [[4.1, 2.0], [2.0, 1.1]])


def test_an_abandoned_episode_is_taken_out_of_a_again():
    policy, slate = NeuralLinLogUCB(np.zeros(2), regularisation=0.1), _slate((2.0, 1.0))
    policy.expect(1, slate, policy.select(slate, 1, abstain=False, seed=0))
    policy.withdraw(1)
    np.testing.assert_allclose(policy.state_dict()["a"], 0.1 * np.eye(2), atol=1e-12)


def test_it_never_abstains():
    policy = NeuralLinLogUCB(np.zeros(2))
    assert not policy.select(_slate((0.0, 0.0)), 1, abstain=True, seed=0).abstained
