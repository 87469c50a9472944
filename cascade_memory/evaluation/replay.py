"""Off-policy evaluation of another policy on the logged episodes of a memory, by the propensities in its ledger."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade_memory.assembly import place_of, resolve_ranker
from cascade_memory.bandit import Estimates, Interval, Logged, context_of, estimate, intervals
from cascade_memory.domain import check_namespace, no_namespace
from cascade_memory.errors import InvalidInput
from cascade_memory.insight import is_one_choice, logged, with_nothing
from cascade_memory.ports import Judged

ONE_STEP = (
    "This evaluates single choices: what the policy would have shown in these episodes, from the cases that were stored then. "
    "With this policy from the beginning, other cases would have been stored."
)
_ALIKE = "cosine-1"  # an encoder without features: it needs only the similarity, which every recall logs


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The result of evaluating a policy on logged episodes.

    ``logged`` is the mean reward that the episodes really had. ``left_out`` counts the episodes that could not be used,
    such as those with several recalls, with ``k`` above 1, or without the policy's features; ``forgot`` counts those of them
    that had a candidate which was forgotten later. ``certain`` says that every choice in the used episodes was made with
    certainty.
    """

    policy: str
    logged: Interval
    estimates: Estimates
    left_out: int
    forgot: int
    certain: bool

    @property
    def verdict(self) -> str:
        """Describe in words what is known about the policy's mean reward."""
        found = self.estimates
        if found.inverse is not None:
            return f"identified: all its choices could have been made; effective sample size {found.effective:,.0f} episodes"
        within = f"its mean reward lies between {found.bounds.low:.3f} and {found.bounds.high:.3f}"
        if self.certain:
            return (
                f"not identified: every choice was made with certainty. explore=0.1 makes some at random; without it, {within}"
            )
        if not found.uncovered:
            return f"not identified: none of the policy's choices was ever made; {within}"
        share = f"{100 * found.uncovered:.1f} %"
        return f"not identified: {share} of the policy's choices could never have been made; whatever their rewards, {within}"

    def rows(self) -> list[tuple[str, str]]:
        """List the rows of the table."""
        found = self.estimates
        named = (
            ("inverse propensity", found.inverse),
            ("self-normalised", found.normalised),
            ("doubly robust", found.robust),
        )
        forgot = f", {self.forgot:,} of them with a candidate that was forgotten" if self.forgot else ""
        rows = [
            ("policy", self.policy),
            ("episodes", f"{found.episodes:,} replayed, {self.left_out:,} left out{forgot}"),
            ("really earned", _level(self.logged)),
            *((name, _level(one)) for name, one in named if one is not None),
        ]
        if found.inverse is not None and found.robust is None:
            rows.append(("doubly robust", "– (success was not predicted for every choice)"))
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain values, ready for JSON."""
        return {**dataclasses.asdict(self), "verdict": self.verdict, "limits": ONE_STEP}


def replay(path: str | os.PathLike[str], policy: str, *, namespace: str = "default") -> Replay:
    """Estimate what mean reward a policy would have had on a memory's logged episodes.

    ``policy`` is the name of a ranker, or "shadow" for the shadow ranker (one that only proposes choices) that ran last.
    """
    place = place_of(path)
    place.check_there()
    ledger = place.ledger()
    try:
        number = ledger.namespace(check_namespace(namespace), create=False)
        if number is None and (names := ledger.namespaces()):
            raise InvalidInput(no_namespace(namespace, names))
        judged = [] if number is None else list(ledger.insight.judged(number))
    finally:
        ledger.close()
    if not judged:
        raise InvalidInput(f"no episode of {namespace!r} has been judged yet, so there is nothing to replay")
    log = list(_shadowed(judged) if policy == "shadow" else _replayed(judged, policy))
    if not log:
        raise InvalidInput(
            f"none of {len(judged):,} episodes can be replayed with {policy!r}: an episode needs one recall of at most "
            f"one case (k=1), must be among the last 2,048, must have no forgotten candidate, and must have the features that "
            f"this policy uses. You can also run the policy as a shadow: shadow={policy!r}"
        )
    chances = np.concatenate([one.behaviour for one in log])
    return Replay(
        policy=policy,
        logged=intervals.mean(np.array([one.reward for one in log])),
        estimates=estimate(log),
        left_out=len(judged) - len(log),
        forgot=sum(one.forgot for one in judged),
        certain=not ((chances > 0.0) & (chances < 1.0 - 1e-5)).any(),
    )


def _shadowed(judged: Sequence[Judged]) -> Iterator[Logged]:
    watching = [one.shadow for one in judged if one.shadow is not None]
    for one in judged:
        if watching and one.shadow == watching[-1] and is_one_choice(one):
            yield logged(one, with_nothing(one.shadow_propensity))


def _replayed(judged: Sequence[Judged], name: str) -> Iterator[Logged]:
    """Let a policy choose from each logged slate, and then learn from the outcome of the choice that was really made."""
    ranker = resolve_ranker(name, hindsight=True)
    if ranker.newest or not ranker.writes_features:
        raise InvalidInput(f"{name!r} cannot be replayed: it needs other candidates, or texts, which were not logged")
    policy, reads = ranker.policy(), ranker.encoder(1, _no_vectors).identity
    # If showing nothing never had a positive probability, the memory ran with abstain=False; then the policy does so too.
    abstain = any(with_nothing(one.propensity)[-1] > 0.0 for one in judged if len(one.lesson.slate))
    for seed, one in enumerate(judged):
        n = len(one.lesson.slate)
        if not one.whole or (n and reads not in (_ALIKE, one.encoder)):
            continue
        if n and reads == one.encoder != _ALIKE and one.lesson.slate.features.shape[1] != len(ranker.features):
            continue  # the ranker failed in this recall, so its features were not computed
        features = one.lesson.slate.features if reads == one.encoder else np.zeros((n, 0), np.float32)
        slate = dataclasses.replace(one.lesson.slate, features=features)
        lesson, target = dataclasses.replace(one.lesson, slate=slate), np.ones(1)
        if n:
            choice = policy.select(slate, 1, abstain=abstain, seed=seed)
            target = with_nothing(choice.propensity)
            if len(lesson.chosen):
                lesson = dataclasses.replace(lesson, context=context_of(policy, slate, choice, lesson.chosen))
        if is_one_choice(one):
            yield logged(one, target)
        policy.update([lesson])


def _no_vectors(keys: NDArray[np.int64]) -> NDArray[np.float32]:
    return np.zeros((len(keys), 1), np.float32)


def _level(one: Interval) -> str:
    return f"{one.estimate:.3f} ({one.low:.3f} to {one.high:.3f})"
