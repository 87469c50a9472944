"""Two ways to explore: by a bonus for uncertainty, or by random choices with known probabilities (epsilon-greedy).

The bonus is added to the exploitation score. Off-policy evaluation needs the probabilities.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from cascade_memory.bandit.similarity import best_first
from cascade_memory.ports.policy import Choice, Floats, MayAbstain, Policy, Slate

LEADERS = 4  # candidates that exploration may put first: the others would rarely help, and would make these less probable


@dataclass(frozen=True, slots=True)
class UpperConfidence:
    """The bonus of an upper confidence bound: ``alpha * uncertainty``, but zero for the first ``burn_in`` rewards.

    Before those rewards the posterior says so little that the bonus would only be noise.

    >>> UpperConfidence(alpha=0.5, burn_in=16).bonus(np.array([1.0, 3.0]), rewards=20)
    array([0.5, 1.5])
    >>> UpperConfidence(alpha=0.5, burn_in=16).bonus(np.array([1.0, 3.0]), rewards=3)
    array([0., 0.])
    """

    alpha: float = 0.1
    burn_in: int = 16

    def bonus(self, uncertainty: Floats, rewards: int) -> Floats:
        """Compute the bonus of each candidate."""
        return self.alpha * uncertainty if rewards >= self.burn_in else np.zeros_like(uncertainty)


def mixed(policy: Policy, slate: Slate, choice: Choice, k: int, *, epsilon: float, abstain: bool, seed: int) -> Choice:
    """With probability ``epsilon``, replace the policy's choice by a random one.

    The random choice puts one of the best candidates (``LEADERS``) first, or shows no case.

    "No case" is an option only if the policy may abstain. Some policies decide at random whether to abstain. Such a policy is
    asked for the probability of showing a case, and the decision is drawn again with it, so that the logged propensities are
    exact.
    """
    order = np.concatenate([choice.chosen, (rest := best_first(slate, choice.score))[~np.isin(rest, choice.chosen)]])
    leaders = order[:LEADERS]
    shows = float(not choice.abstained)
    if abstain and isinstance(policy, MayAbstain):
        shows = policy.chance_of_showing(choice, seed=seed)
    evenly = epsilon / (len(leaders) + abstain)
    first = np.full(len(leaders), evenly)
    first[0] += (1.0 - epsilon) * shows
    nothing = max(0.0, 1.0 - float(first.sum()))
    drawn = int(np.random.default_rng([seed, 1]).choice(len(leaders) + 1, p=[*first, nothing]))
    lists = [np.concatenate([[leader], order[order != leader]])[:k] for leader in leaders]
    propensity = np.zeros(len(slate))
    for chance, positions in zip(first, lists, strict=True):
        propensity[positions] += chance
    chosen = lists[drawn] if drawn < len(lists) else lists[0]
    return dataclasses.replace(
        choice,
        chosen=chosen,
        abstained=drawn == len(lists),
        propensity=np.minimum(propensity, 1.0),
        context=context_of(policy, slate, choice, chosen),
    )


def context_of(policy: Policy, slate: Slate, choice: Choice, chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """Return the context from which the policy will learn if these candidates are shown instead of those that it chose."""
    return policy.context_of(slate, choice, chosen) if isinstance(policy, MayAbstain) else choice.context
