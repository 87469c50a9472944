"""What every ``Policy`` must do."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cascade_memory.ports import Choice, Feedback, Policy, Slate


def random_slate(n: int, dimension: int, seed: int = 0) -> Slate:
    """Make a slate of n candidates, the most similar first; their first feature is the similarity."""
    rng = np.random.default_rng(seed)
    similarity = np.sort(rng.random(n))[::-1]
    features = rng.normal(size=(n, dimension))
    if n and dimension:
        features[:, 0] = (similarity - similarity.mean()) / (similarity.std() + 1e-9)
    return Slate(features=features, similarity=similarity, groups=rng.integers(0, 4, n))


def two_sided_slate(dimension: int, seed: int) -> Slate:
    """Make a slate of six equally similar candidates with two solutions, 1 and 2, which the last feature tells apart.

    >>> slate = two_sided_slate(dimension=3, seed=0)
    >>> sorted(slate.groups.tolist()), sorted(slate.features[:, -1].tolist())
    ([1, 1, 1, 2, 2, 2], [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    """
    rng = np.random.default_rng([seed, dimension])
    groups = rng.permutation(np.array([1, 1, 1, 2, 2, 2]))
    features = np.zeros((6, dimension))
    if dimension:
        features[:, 1:] = rng.normal(size=(6, max(dimension - 1, 0)))  # the first one, the similarity, is equal for all
        features[:, -1] = np.where(groups == 1, 1.0, -1.0)
    return Slate(features=features, similarity=np.full(6, 0.5), groups=groups, query=np.array([1.0, 0.0], np.float32))


def shown_outcome(
    key: int,
    slate: Slate,
    choice: Choice,
    reward: float,
    agreement: NDArray[np.float32] | None = None,
    descent: tuple[int, int] | None = None,
) -> Feedback:
    """Return the outcome of an episode in which the chosen candidates were shown."""
    return Feedback(
        key=key,
        slate=slate,
        chosen=choice.chosen,
        context=choice.context,
        shown=True,
        reward=reward,
        agreement=agreement,
        descent=descent,
    )


class PolicyContract:
    """The tests of a ``Policy``: subclass this class, return one from ``make``, and let pytest collect the subclass.

    Set ``dimension``, and return a fresh policy from ``make``. Set ``learns = False`` for a policy that learns nothing on
    purpose, such as one that shows the most similar case. The contract then checks that rewards change nothing.
    """

    dimension = 5
    learns = True

    def make(self) -> Policy:
        """Return the policy under test."""
        raise NotImplementedError

    def _outcome(self, policy: Policy, key: int, reward: float) -> Feedback:
        slate = random_slate(8, self.dimension, seed=key)
        choice = policy.select(slate, 1, abstain=False, seed=key)
        agreement = (slate.groups == slate.groups[0]).astype(np.float32) if reward else None
        return shown_outcome(key, slate, choice, reward, agreement)

    def _trained(self) -> Policy:
        policy = self.make()
        for key in range(40):
            policy.update([self._outcome(policy, key, float(key % 3 > 0))])
        return policy

    def test_chooses_k_distinct_candidates_for_any_n(self) -> None:
        """A policy never chooses more candidates than there are, nor one twice."""
        policy = self.make()
        for n in (1, 2, 5, 33):
            for k in (1, 2, n, n + 1):
                choice = policy.select(random_slate(n, self.dimension), k, abstain=False, seed=0)
                assert len(choice.chosen) == len(set(choice.chosen.tolist())) == min(k, n)
                assert choice.chosen.min() >= 0
                assert choice.chosen.max() < n

    def test_every_array_has_one_entry_per_candidate_and_propensities_are_probabilities(self) -> None:
        """Each array of a choice has one number per candidate; propensities are from 0 to 1, and no uncertainty is negative."""
        choice = self._trained().select(random_slate(7, self.dimension), 2, abstain=True, seed=3)
        for array in (choice.value, choice.uncertainty, choice.score, choice.utility, choice.propensity):
            assert len(array) == 7
        assert ((choice.propensity >= 0) & (choice.propensity <= 1)).all()
        assert (choice.uncertainty >= 0).all()

    def test_the_same_seed_gives_the_same_choice(self) -> None:
        """The choice depends on the arguments and on what was learned, and on nothing else."""
        policy, slate = self._trained(), random_slate(9, self.dimension)
        first, second = (policy.select(slate, 3, abstain=True, seed=11) for _ in range(2))
        np.testing.assert_array_equal(first.chosen, second.chosen)
        assert first.abstained == second.abstained

    def test_a_state_that_travelled_chooses_alike(self) -> None:
        """A policy that was saved by ``state_dict`` and loaded chooses like the original."""
        policy, copy = self._trained(), self.make()
        copy.load_state_dict(policy.state_dict())
        assert copy.rewards == policy.rewards
        for seed in range(20):
            slate = random_slate(9, self.dimension, seed=seed)
            one, other = (each.select(slate, 2, abstain=True, seed=seed) for each in (policy, copy))
            np.testing.assert_array_equal(one.chosen, other.chosen)
            np.testing.assert_allclose(one.score, other.score, atol=1e-9)
            assert one.abstained == other.abstained

    def test_rebuilding_from_nothing_is_starting_afresh(self) -> None:
        """After ``rebuild([])`` a policy behaves like a new one."""
        policy, fresh = self._trained(), self.make()
        policy.rebuild([])
        slate = random_slate(9, self.dimension)
        one, other = (each.select(slate, 2, abstain=False, seed=1) for each in (policy, fresh))
        np.testing.assert_array_equal(one.chosen, other.chosen)
        assert policy.rewards == 0

    def test_an_expected_reward_that_is_withdrawn_leaves_no_trace(self) -> None:
        """After ``expect`` and ``withdraw`` for an episode that is never rewarded, a policy scores candidates as before."""
        policy, slate = self._trained(), random_slate(9, self.dimension)
        before = policy.select(slate, 1, abstain=False, seed=0)
        policy.expect(10_000, slate, before)
        policy.withdraw(10_000)
        policy.withdraw(10_001)
        np.testing.assert_allclose(policy.select(slate, 1, abstain=False, seed=0).score, before.score, atol=1e-6)

    def test_an_episode_without_candidates_is_no_error(self) -> None:
        """The first recall of every memory has no candidates."""
        policy, nothing = self.make(), np.zeros(0)
        empty = Slate(features=np.zeros((0, 0)), similarity=nothing, groups=np.zeros(0, np.int64))
        chosen = np.zeros(0, np.int64)
        policy.update([Feedback(key=1, slate=empty, chosen=chosen, context=nothing, shown=False, reward=1.0, agreement=None)])
        assert len(policy.select(random_slate(3, self.dimension), 1, abstain=False, seed=0).chosen) == 1

    # -- learning ----------------------------------------------------------------------------------------------------

    _lessons = range(1_000, 1_240)
    _more_lessons = range(2_000, 2_080)

    def _taught(self, policy: Policy, rewarded: int, lessons: Iterable[int] = _lessons) -> list[Feedback]:
        """Reward a policy if it chooses the solution ``rewarded``, and not if it chooses the other one; return the outcomes."""
        history: list[Feedback] = []
        for key in lessons:
            slate = two_sided_slate(self.dimension, key)
            choice = policy.select(slate, 1, abstain=False, seed=key)
            policy.expect(key, slate, choice)
            success = int(slate.groups[choice.chosen[0]]) == rewarded
            outcome = Feedback(
                key=key,
                slate=slate,
                chosen=choice.chosen,
                context=choice.context,
                shown=True,
                reward=float(success),
                agreement=(slate.groups == rewarded).astype(np.float32) if success else None,
            )
            policy.update([outcome])
            history.append(outcome)
        return history

    def _firsts(self, policy: Policy) -> list[int]:
        """Return, for each of many slates, the solution that a policy chooses first."""
        slates = [two_sided_slate(self.dimension, seed) for seed in range(60)]
        return [int(one.groups[policy.select(one, 1, abstain=False, seed=7).chosen[0]]) for one in slates]

    def _assert_prefers(self, policy: Policy, rewarded: int, before: list[int]) -> None:
        """Check that the rewarded solution is now first in at least 75 % of the slates, and in more than before.

        For a policy that does not learn, check that rewards have changed nothing.
        """
        firsts = self._firsts(policy)
        if self.learns:
            share = firsts.count(rewarded) / len(firsts)
            assert share >= 0.75, f"after {policy.rewards} rewards, what is always rewarded comes first in only {share:.0%}"
            assert firsts.count(rewarded) > before.count(rewarded)
        else:
            assert firsts == before, "the contract says that this policy does not learn, but rewards change its choices"
            assert policy.rewards == 0

    def test_what_is_rewarded_is_chosen_first_more_often(self) -> None:
        """If one of two solutions is always rewarded and the other one never, a policy learns which one, whichever it is."""
        for rewarded in (1, 2):
            policy = self.make()
            before = self._firsts(policy)
            self._taught(policy, rewarded)
            self._assert_prefers(policy, rewarded, before)

    def test_a_state_replaces_what_was_learned_and_is_learned_on_from(self) -> None:
        """A policy that loads a state forgets what it had learned, and learns on from later outcomes as the original does."""
        policy, copy = self.make(), self.make()
        self._taught(policy, 1)
        self._taught(copy, 2)
        copy.load_state_dict(policy.state_dict())
        assert self._firsts(copy) == self._firsts(policy)
        for each in (policy, copy):
            self._taught(each, 2, self._more_lessons)
        assert self._firsts(copy) == self._firsts(policy)
        assert copy.rewards == policy.rewards

    def test_rebuilding_learns_from_the_history_alone(self) -> None:
        """After ``rebuild`` a policy has forgotten what it knew, and knows what the history says."""
        teacher, policy = self.make(), self.make()
        before = self._firsts(policy)
        history = self._taught(teacher, 1)
        self._taught(policy, 2)
        policy.rebuild(history)
        self._assert_prefers(policy, 1, before)
        assert policy.rewards == teacher.rewards
