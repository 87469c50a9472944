"""Each rival's score and update, by hand from its formula."""

from __future__ import annotations

import numpy as np
import pytest

from cascade_memory.bandit.credit import credit_all, credit_first
from cascade_memory.bandit.neural_linlogucb import NeuralLinLogUCB
from cascade_memory.bandit.neural_logucb import NeuralLogUCB
from cascade_memory.bandit.rivals import LinLogUCB, NeuralLinUCB, ThompsonSampling
from cascade_memory.bandit.similarity import FrozenHead, ShowNothing
from cascade_memory.ports.policy import Feedback, Slate


def _slate(*features: tuple[float, ...]) -> Slate:
    return Slate(features=np.array(features), similarity=np.linspace(0.9, 0.1, len(features)), groups=np.arange(len(features)))


def _rewarded(slate: Slate, reward: float, *, chosen: tuple[int, ...] = (0,), key: int = 1) -> Feedback:
    return Feedback(
        key=key, slate=slate, chosen=np.array(chosen), context=np.zeros(0), shown=True, reward=reward, agreement=None
    )


# -- the options of the paper's own ------------------------------------------------------------------------------------


def test_the_probability_scale_adds_the_bonus_to_the_predicted_probability():
    # sigma(<theta, f>) + alpha ||f||_{A^-1} with theta = (1, 0), f = (0, 2), A = 4 I, alpha = 0.5:
    # sigma(0) = 1/2, ||f|| = 2 / sqrt(4) = 1, so 1/2 + 1/2 = 1.
    policy = NeuralLinLogUCB(np.array([1.0, 0.0]), alpha=0.5, regularisation=4.0, scale="probability")
    assert policy.select(_slate((0.0, 2.0)), 1, abstain=False, seed=0).score[0] == pytest.approx(1.0)


def test_without_decay_lambda_does_not_pull_theta():
    # f = (0, 0): the gradient of the data is nothing; with decay theta would shrink by eta lambda theta.
    policy = NeuralLinLogUCB(np.array([1.0, 0.0]), regularisation=0.1, learning_rate=0.5, decay=False)
    policy.update([_rewarded(_slate((0.0, 0.0)), 1.0)])
    np.testing.assert_allclose(policy.theta, [1.0, 0.0])


def test_an_exact_refit_is_where_the_gradient_of_the_regularised_loss_vanishes():
    # One pair f = 2 with r = 1 and lambda = 1: (sigma(2 theta) - 1) 2 + theta = 0, that is theta = 2 sigma(-2 theta).
    # theta = 0.6 gives 2 / (1 + e^1.2) = 0.4629; 0.5 gives 0.5379; the fixed point, by bisection on paper: 0.5204.
    policy = NeuralLinLogUCB(np.zeros(1), regularisation=1.0, refit="exact")
    policy.update([_rewarded(_slate((2.0,)), 1.0)])
    (theta,) = policy.theta
    assert theta == pytest.approx(2.0 / (1.0 + np.exp(2.0 * theta)), abs=1e-12)
    assert theta == pytest.approx(0.5204, abs=1e-3)


@pytest.mark.slow
def test_an_exact_refit_is_scikit_learn_s_logistic_regression():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 6))
    labels = (rng.random(300) < 1 / (1 + np.exp(-features @ rng.normal(size=6)))).astype(float)
    policy = NeuralLinLogUCB(np.zeros(6), regularisation=0.7, refit="exact")
    for i in range(300):
        policy.observe(_rewarded(_slate(tuple(features[i])), labels[i], key=i))
    policy.settle()
    # scikit-learn minimises C * loss + |theta|^2 / 2: C = 1 / lambda.
    model = linear_model.LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=1_000)
    np.testing.assert_allclose(policy.theta, model.fit(features, labels).coef_[0], atol=1e-5)


def test_a_discount_restores_the_prior_as_it_forgets():
    # A_0 = lambda I = 2; A_1 = g A_0 + (1 - g) lambda + f^2 = 2 + 9 = 11; A_2 = 0.5 * 11 + 0.5 * 2 + 1 = 7.5.
    policy = NeuralLinLogUCB(np.zeros(1), regularisation=2.0, discount=0.5)
    policy.update([_rewarded(_slate((3.0,)), 1.0), _rewarded(_slate((1.0,)), 1.0, key=2)])
    assert policy.state_dict()["a"][0, 0] == pytest.approx(7.5)


def test_with_a_discount_open_episodes_cannot_break_a():
    rng, policy = np.random.default_rng(0), NeuralLinLogUCB(np.zeros(4), regularisation=0.1, discount=0.9)
    for key in range(60):
        slate = _slate(*rng.normal(size=(5, 4)))
        policy.expect(key, slate, policy.select(slate, 1, abstain=False, seed=0))
        if key % 3 == 0:
            policy.update([_rewarded(slate, 1.0, key=key)])
    for key in range(60):
        policy.withdraw(key)
    assert np.linalg.eigvalsh(policy.state_dict()["a"]).min() > 0.05


@pytest.mark.parametrize(("credit", "theta"), [(credit_first, [0.5, 0.0]), (credit_all, [0.5, 0.5])])
def test_credit_decides_which_of_several_cases_is_taught(credit, theta):
    # theta = 0, eta = 1, lambda = 0, r = 1: each credited pair f moves theta by (1 - sigma(<theta, f>)) f. The two pairs are
    # orthogonal, so sigma is 1/2 for both: theta gains f / 2 from each one that is credited.
    policy = NeuralLinLogUCB(np.zeros(2), regularisation=1e-12, learning_rate=1.0, credit=credit)
    policy.update([_rewarded(_slate((1.0, 0.0), (0.0, 1.0)), 1.0, chosen=(0, 1))])
    np.testing.assert_allclose(policy.theta, theta, atol=1e-9)


def test_a_renewed_bandit_has_a_of_the_new_features():
    # Two pairs f = 1 and f = 2 with lambda = 1: A = 1 + 1 + 4 = 6. Under a new encoder the second one is 3, the first is
    # still 1: A = 1 + 1 + 9 = 11, and theta is what the encoder's head says.
    policy = NeuralLinLogUCB(np.zeros(1), regularisation=1.0)
    policy.update([_rewarded(_slate((1.0,)), 1.0), _rewarded(_slate((2.0,)), 0.0, key=2)])
    assert policy.state_dict()["a"][0, 0] == pytest.approx(6.0)
    renewed = policy.renewed(np.array([0.25]), [1], np.array([[3.0]]))
    assert renewed.state_dict()["a"][0, 0] == pytest.approx(11.0)
    assert renewed.theta[0] == 0.25
    assert policy.state_dict()["a"][0, 0] == pytest.approx(6.0)  # who is choosing with it goes on


# -- LinLogUCB ---------------------------------------------------------------------------------------------------------


def test_linlogucb_starts_at_one_over_d_and_scores_on_frozen_features():
    # theta_0 = (1/2, 1/2), V = lambda I = 0.25 I, alpha = 1, f = (3, 4): 3.5 + 5 / sqrt(0.25) = 3.5 + 10.
    policy = LinLogUCB(2, alpha=1.0, regularisation=0.25)
    assert policy.select(_slate((3.0, 4.0)), 1, abstain=False, seed=0).score[0] == pytest.approx(13.5)


def test_linlogucb_refits_theta_to_all_pairs():
    # Twice f = 1, once rewarded and once not: by symmetry the minimum of the loss with lambda/2 theta^2 is theta = 0.
    policy = LinLogUCB(1, regularisation=1.0)
    policy.update([_rewarded(_slate((1.0,)), 1.0), _rewarded(_slate((1.0,)), 0.0, key=2)])
    assert policy.theta[0] == pytest.approx(0.0, abs=1e-12)


# -- Neural-LinUCB -----------------------------------------------------------------------------------------------------


def test_neural_linucb_s_head_is_ridge_regression():
    # f = 1 with r = 1, f = 2 with r = 0, lambda = 1: theta = sum r f / (lambda + sum f^2) = 1 / (1 + 1 + 4) = 1/6.
    policy = NeuralLinUCB(np.zeros(1), regularisation=1.0)
    policy.update([_rewarded(_slate((1.0,)), 1.0), _rewarded(_slate((2.0,)), 0.0, key=2)])
    assert policy.theta[0] == pytest.approx(1 / 6)


def test_neural_linucb_s_score_is_linear_in_the_reward():
    # theta = (0.5, 0), f = (1, 0), A = 4 I, alpha = 1: 0.5 + 1/2; the prediction is the value itself, cut to [0, 1].
    choice = NeuralLinUCB(np.array([0.5, 0.0]), alpha=1.0, regularisation=4.0).select(
        _slate((1.0, 0.0), (9.0, 0.0)), 2, abstain=False, seed=0
    )
    assert choice.score[0] == pytest.approx(1.0)
    assert choice.utility.tolist() == [0.5, 1.0]


# -- NeuralLogUCB ------------------------------------------------------------------------------------------------------


def _two_units(**options) -> NeuralLogUCB:
    settings = {"alpha": 1.0, "regularisation": 0.5, "learning_rate": 0.1, "samples": 1, **options}
    policy = NeuralLogUCB(2, width=2, **settings)
    weights = {"inner": np.array([[1.0, 0.0], [0.0, -1.0]]), "outer": np.array([2.0, 3.0])}
    biases = {"inner_bias": np.array([0.0, -1.0]), "outer_bias": np.array([0.25])}
    policy.load_state_dict({**policy.state_dict(), **weights, **biases})
    return policy


def test_neural_logucb_scores_the_network_and_its_gradients():
    # h(x) = 2 relu(x1) + 3 relu(-x2 - 1) + 0.25. At x = (1, 1) only the first unit is active: h = 2.25.
    # Gradients: by W of unit 1: v1 x = (2, 2); by its bias: v1 = 2; by v: (relu(1), 0) = (1, 0); by the outer bias: 1.
    # U = lambda = 0.5 everywhere: lambda * (4 + 4 + 4 + 1 + 1) / 0.5 = 14.
    choice = _two_units().select(_slate((1.0, 1.0)), 1, abstain=False, seed=0)
    assert choice.value[0] == pytest.approx(2.25)
    assert choice.score[0] == pytest.approx(2.25 + np.sqrt(14.0))


def test_neural_logucb_s_design_grows_by_the_squared_gradients_at_selection():
    # After (1, 1) was chosen, U is 4.5 where the squared gradient is 4, and 1.5 where it is 1:
    # lambda * (3 * 4/4.5 + 2 * 1/1.5) = 0.5 * 4 = 2.
    policy, slate = _two_units(), _slate((1.0, 1.0))
    policy.expect(1, slate, policy.select(slate, 1, abstain=False, seed=0))
    assert policy.select(slate, 1, abstain=False, seed=0).uncertainty[0] == pytest.approx(np.sqrt(2.0))


def test_neural_logucb_takes_a_step_of_the_logistic_loss_with_weight_decay():
    # One sample x = (1, 1), r = 0, eta = 0.1, lambda = 0.5, error = sigma(2.25): everything shrinks by 1 - eta lambda = 0.95;
    # W1 loses eta error v1 x, b1 eta error v1, v1 eta error relu(1), c eta error; the second unit was silent.
    policy = _two_units()
    policy.update([_rewarded(_slate((1.0, 1.0)), 0.0)])
    state, error = policy.state_dict(), 1 / (1 + np.exp(-2.25))
    np.testing.assert_allclose(state["inner"], [[0.95 - 0.2 * error, -0.2 * error], [0.0, -0.95]])
    np.testing.assert_allclose(state["inner_bias"], [-0.2 * error, -0.95])
    np.testing.assert_allclose(state["outer"], [1.9 - 0.1 * error, 2.85])
    np.testing.assert_allclose(state["outer_bias"], [0.25 * 0.95 - 0.1 * error])


def test_neural_logucb_takes_a_thousand_steps_even_with_a_single_pair():
    # With nothing to learn from (x = 0) and no outer weights, only the outer bias moves:
    # c <- (1 - eta lambda) c - eta (sigma(c) - r).
    policy = NeuralLogUCB(1, width=1, regularisation=0.1)
    zeros = {"inner": np.zeros((1, 1)), "inner_bias": np.zeros(1), "outer": np.zeros(1), "outer_bias": np.zeros(1)}
    policy.load_state_dict({**policy.state_dict(), **zeros})
    policy.update([_rewarded(_slate((0.0,)), 1.0)])
    bias, after = 0.0, []
    for _ in range(1_000):
        bias = (1 - 0.01 * 0.1) * bias - 0.01 * (1 / (1 + np.exp(-bias)) - 1.0)
        after.append(bias)
    assert policy.state_dict()["outer_bias"][0] == pytest.approx(after[-1])
    assert after[-1] - after[19] > 1.0


@pytest.mark.slow
def test_neural_logucb_agrees_with_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    features, rewards = rng.normal(size=(12, 4)), (rng.random(12) < 0.5).astype(float)
    policy = NeuralLogUCB(4, width=6, regularisation=0.1, samples=30)
    state = policy.state_dict()
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1)).double()
    names = ("inner", "inner_bias", "outer", "outer_bias")
    with torch.no_grad():
        for parameter, name in zip(model.parameters(), names, strict=True):
            parameter.copy_(torch.tensor(state[name]).reshape(parameter.shape))
    slate = _slate(*map(tuple, features))
    gradients = []
    for row in torch.tensor(features):
        model.zero_grad()
        model(row).backward()
        gradients.append(torch.cat([one.grad.flatten() for one in model.parameters()]).numpy())
    expected = np.sqrt((np.array(gradients) ** 2).sum(axis=1))  # U = lambda, so lambda / U = 1
    np.testing.assert_allclose(policy.select(slate, 1, abstain=False, seed=0).uncertainty, expected)
    for place in range(12):
        policy.update([_rewarded(slate, rewards[place], chosen=(place,), key=place)])
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=0.1)
    for seen in range(1, 13):
        order = np.random.default_rng([0, seen]).permutation(seen)
        for step in range(30):
            place = int(order[step % seen])
            optimiser.zero_grad()
            target = torch.tensor([rewards[place]])
            torch.nn.functional.binary_cross_entropy_with_logits(model(torch.tensor(features[place])), target).backward()
            optimiser.step()
    for parameter, name in zip(model.parameters(), names, strict=True):
        np.testing.assert_allclose(policy.state_dict()[name].ravel(), parameter.detach().numpy().ravel(), atol=1e-12)


def test_neural_logucb_refuses_a_state_without_biases_and_changes_nothing():
    policy = _two_units()
    before = policy.state_dict()
    old = {name: array for name, array in before.items() if "bias" not in name}
    with pytest.raises(ValueError, match="inner_bias is missing"):
        policy.load_state_dict(old)
    for name, array in before.items():
        np.testing.assert_array_equal(policy.state_dict()[name], array)


def test_neural_logucb_refuses_steps_that_turn_the_weights_around():
    with pytest.raises(ValueError, match="below 1"):
        NeuralLogUCB(2, learning_rate=10.0, regularisation=0.1)


# -- Thompson, and the ones that learn nothing -------------------------------------------------------------------------


def test_thompson_draws_from_the_posterior():
    # theta ~ N(1, alpha^2 / A) with alpha = 2 and A = lambda = 4: the score of f = 3 is N(3, (3 * 2 / 2)^2) = N(3, 9).
    policy = ThompsonSampling(np.array([1.0]), alpha=2.0, regularisation=4.0)
    slate = _slate((3.0,))
    scores = np.array([policy.select(slate, 1, abstain=False, seed=seed).score[0] for seed in range(4_000)])
    assert scores.mean() == pytest.approx(3.0, abs=0.2)
    assert scores.std() == pytest.approx(3.0, abs=0.15)


def test_a_frozen_head_orders_by_its_weights_for_ever():
    policy, slate = FrozenHead(np.array([0.0, 1.0])), _slate((9.0, 1.0), (0.0, 5.0))
    policy.update([_rewarded(slate, 0.0, chosen=(1,))] * 50)
    assert policy.select(slate, 1, abstain=False, seed=0).chosen.tolist() == [1]


def test_zero_shot_shows_nothing_whatever_is_asked():
    choice = ShowNothing().select(_slate((1.0,), (2.0,)), 2, abstain=False, seed=0)
    assert choice.abstained
    assert choice.propensity.tolist() == [0.0, 0.0]
