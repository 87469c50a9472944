"""The right to show: what harm may cost is bounded, help is hardly delayed, and more cases are shown only where they help."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from inside import state_of

from cascade_memory import CascadeMemory
from cascade_memory.bandit.case_value import CaseValue
from cascade_memory.bandit.light import CONTEXT_PRIOR, LightPolicy
from cascade_memory.bandit.right_to_show import BANDS, MOST, PAUSE, Account, counts_up_to, how_many, noted
from cascade_memory.ports.policy import Feedback, Slate

LIKELY = np.array([1.0, 2.0, 1.0, 0.0])
GUESSED = np.full(3, np.nan)


def showings(alone: float, with_case: Callable[[int], float], n: int, seed: int) -> list[bool]:
    """Play n episodes, which succeed by chance; return in which of them a case was shown."""
    value, rng = CaseValue(CONTEXT_PRIOR), np.random.default_rng(seed)
    shown: list[bool] = []
    for number in range(n):
        shown.append(value.worth_showing(LIKELY, rng))
        success = rng.random() < (with_case(number) if shown[-1] else alone)
        value.observe(LIKELY, shown=shown[-1], reward=float(success), fitted=None, weight=1.0)
    return shown


def lost(alone: float, with_case: float, n: int, seed: int) -> tuple[float, float]:
    """Return how many successes showing cost in n episodes, as an expectation, and the share of episodes with a case."""
    shown = sum(showings(alone, lambda _: with_case, n, seed))
    return shown * (alone - with_case), shown / n


@pytest.mark.slow
def test_a_bank_that_harms_costs_about_a_point_of_five_hundred():
    """It is full from the first episode on, so it is known only later how tasks go without it."""
    harms = [(0.25, 0.0), (0.25, 0.15), (0.5, 0.25), (0.75, 0.65)]
    costs = [np.mean([lost(alone, with_case, 500, seed)[0] for seed in range(40)]) for alone, with_case in harms]
    assert np.mean(costs) <= 5.5
    assert max(costs) <= 8.0


@pytest.mark.slow
@pytest.mark.parametrize(("alone", "with_case"), [(0.25, 0.5), (0.5, 0.7), (0.0, 0.3)])
def test_a_bank_that_helps_is_shown(alone: float, with_case: float):
    shares = [lost(alone, with_case, 500, seed)[1] for seed in range(12)]
    assert np.median(shares) > 0.85


@pytest.mark.slow
def test_a_bank_that_begins_to_help_gets_its_right_back():
    shown = showings(0.4, lambda number: 0.1 if number < 500 else 0.8, 2_500, seed=3)
    assert np.mean(shown[400:500]) < 0.1
    assert np.mean(shown[-200:]) > 0.8


def test_a_bank_that_begins_to_harm_loses_it():
    shown = showings(0.4, lambda number: 0.8 if number < 500 else 0.1, 1_000, seed=3)
    assert np.mean(shown[400:500]) > 0.8
    assert np.mean(shown[600:]) < 0.1


def test_the_account_stays_within_its_bounds():
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 100.0):
        account = Account()
        for one in rng.normal(0.0, scale, 500):
            account = account.after(np.array([one if account.open else 0.0]))
            assert 0.0 <= account.left <= MOST
            assert account.open == (account.left > 0.0)
    assert Account().after(np.zeros(0)) == Account()


def test_a_bank_that_goes_on_to_harm_is_tried_more_and_more_seldom():
    account, tries = Account(), []
    for number in range(1_000):
        tries += [number] if account.open else []
        account = account.after(np.array([-0.5 if account.open else 0.0]))
    assert tries == [0, 1, 2, 3, 29, 80, 181, 382, 783]
    assert account.after(np.full(60, 0.5)).pause == PAUSE, "once it has earned its right again, pauses are short again"


@pytest.mark.parametrize("k", range(1, 70))
def test_k_is_the_most_that_is_shown(k: int):
    counts = counts_up_to(k)
    assert counts[-1] == k
    assert counts == sorted(set(counts))
    rng = np.random.default_rng(k)
    drawn = {how_many(np.zeros((BANDS, 2)), k, rng) for _ in range(300)}
    assert drawn == set(counts)


@pytest.mark.parametrize(("one", "four", "expected"), [(0.5, 0.3, 1), (0.3, 0.5, 4)])
def test_how_many_is_learned(one: float, four: float, expected: int):
    rng = np.random.default_rng(1)
    outcomes = np.zeros((BANDS, 2))
    rates = {1: one, 2: (one + four) / 2, 4: four}
    chosen: list[int] = []
    for _ in range(600):
        chosen.append(how_many(outcomes, 4, rng))
        outcomes = noted(outcomes, chosen[-1], float(rng.random() < rates[chosen[-1]]), 1.0)
    assert np.mean([count == expected for count in chosen[-300:]]) > 0.5
    assert set(chosen[:30]) == {1, 2, 4}


def slate(key: int) -> Slate:
    similarity = np.array([0.9, 0.8, 0.7])
    return Slate(features=similarity[:, None] * 3 - 2, similarity=similarity, groups=np.array([3, 4, 5]) + 10 * key)


def taught(policy: LightPolicy, n: int, rates: dict[int, float], k: int = 3) -> list[int]:
    """Play episodes in which success depends on the number of cases alone; return the numbers."""
    rng = np.random.default_rng(5)
    counts: list[int] = []
    for key in range(n):
        choice = policy.select(slate(key), k, abstain=True, seed=key)
        count = 0 if choice.abstained else len(choice.chosen)
        reward = float(rng.random() < rates[count])
        feedback = Feedback(
            key=key,
            slate=slate(key),
            chosen=choice.chosen,
            shown=not choice.abstained,
            context=choice.context,
            reward=reward,
            agreement=GUESSED,
        )
        policy.update([feedback])
        counts.append(count)
    return counts


@pytest.mark.slow
def test_the_policy_shows_as_many_as_help():
    few = taught(LightPolicy(dimension=1), 400, {0: 0.2, 1: 0.6, 3: 0.2})
    many = taught(LightPolicy(dimension=1), 400, {0: 0.2, 1: 0.2, 3: 0.6})
    assert np.mean([count == 1 for count in few[-150:]]) > 0.6
    assert np.mean([count == 3 for count in many[-150:]]) > 0.6
    always = LightPolicy(dimension=1).select(slate(0), 3, abstain=False, seed=0)
    assert len(always.chosen) == 3


def test_the_right_and_the_counts_survive_a_restart():
    policy = LightPolicy(dimension=1)
    taught(policy, 200, {0: 0.6, 1: 0.1, 3: 0.1})
    copy = LightPolicy(dimension=1)
    copy.load_state_dict(policy.state_dict())
    for seed in range(40):
        one, other = (each.select(slate(seed), 3, abstain=True, seed=seed) for each in (policy, copy))
        assert (one.abstained, one.chosen.tolist()) == (other.abstained, other.chosen.tolist())
    older = {name: array for name, array in policy.state_dict().items() if name != "value.counts"}
    copy.load_state_dict(older)
    damaged = {**older, "value.counts": np.full((BANDS, 2), -1.0)}
    with pytest.raises(ValueError, match="counts"):
        copy.load_state_dict(damaged)


def test_the_chance_of_showing_knows_the_right():
    policy = LightPolicy(dimension=1)
    counts = taught(policy, 300, {0: 0.8, 1: 0.0, 3: 0.0})
    assert sum(map(bool, counts[-100:])) <= 2
    choice = policy.select(slate(1), 1, abstain=True, seed=1)
    assert policy.chance_of_showing(choice, seed=1) == 0.0
    assert choice.propensity.tolist() == [0.0, 0.0, 0.0]


def test_explain_and_report_say_that_cases_cost_too_much(ram: CascadeMemory):
    ram.add("reset the router", "hold the button")
    ram.reward(ram.recall("reset the router").episode_id, 1.0)
    policy = state_of(ram).policy
    assert isinstance(policy, LightPolicy)
    while policy.value.account.open:
        policy.value.observe(LIKELY, shown=True, reward=0.0, fitted=None, weight=1.0)
    why = ram.recall("reset the router").explain()
    assert 0 < why.paused <= PAUSE
    assert f"cases cost successes here, so the next one is tried after {why.paused} outcomes" in why.summary
    assert f"no cases are shown for {why.paused} outcomes, since they cost successes" in str(ram.report())
