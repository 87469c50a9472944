"""What the ranker has learned, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cascade_memory.domain.display import counted, number
from cascade_memory.ports.policy import Policy, SaysWhatItLearned

_NOTABLE = 0.1  # smallest change of a weight that is told


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What teaches the ranker, and what it has learned so far.

    ``by`` is "hindsight", or "rewards" where solutions do not recur. ``weights`` has the weight of each signal: before any
    reward, and now. Where only rewards teach, ``trust`` is how far they may change the weights (0 to 1), and ``families`` are
    the sizes of the families that have more than one case, the largest first. ``shows_unrelated`` says whether cases are shown
    that are no more similar to a task than unrelated texts are; they are shown only once outcomes have shown that they help.
    ``paused`` is for how many more outcomes nothing is shown, since cases have cost successes here.
    """

    by: Literal["hindsight", "rewards"]
    rewards: int
    weights: Mapping[str, tuple[float, float]]
    trust: float | None
    families: tuple[int, ...]
    shows_unrelated: bool = False
    paused: int = 0

    def lines(self) -> list[str]:
        """Describe what was learned in lines of text."""
        changes = [
            f"{name} {number(before)} -> {number(now)}"
            for name, (before, now) in self.weights.items()
            if abs(now - before) >= _NOTABLE
        ]
        by = "hindsight"
        if self.trust is not None:
            by = f"rewards alone, since solutions do not recur; trust in them for the signals {self.trust:.2f} of 1"
        lines = [f"from {counted(self.rewards, 'reward')}, by {by}", f"weights: {', '.join(changes) or 'as before any reward'}"]
        if self.families:
            lines.append(f"{len(self.families):,} families of cases, the largest with {counted(self.families[0], 'case')}")
        if self.shows_unrelated:
            lines.append("cases that seem unrelated to a task are shown as well, since they were found to help")
        if self.paused:
            lines.append(f"no cases are shown for {counted(self.paused, 'outcome')}, since they cost successes")
        return lines


def learned_by(policy: Policy, features: Sequence[str]) -> Learned | None:
    """Ask a policy what it has learned; None if it cannot say, or has learned nothing yet."""
    if not isinstance(policy, SaysWhatItLearned) or not policy.rewards:
        return None
    taught = policy.taught()
    # A ranker of the user's own may not say what its features are called.
    names = features if len(features) == len(taught.start) else [f"feature {i}" for i in range(len(taught.start))]
    pairs = zip(taught.start.tolist(), taught.weights.tolist(), strict=True)
    return Learned(
        by=taught.by,
        rewards=taught.rewards,
        weights=dict(zip(names, pairs, strict=True)),
        trust=None if math.isnan(taught.trust) else taught.trust,
        families=taught.families,
        shows_unrelated=taught.shows_unrelated,
        paused=taught.paused,
    )
