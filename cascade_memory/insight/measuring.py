"""Computes a report from settled episodes, and the off-policy log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cascade_memory.bandit import intervals
from cascade_memory.bandit.intervals import Interval
from cascade_memory.bandit.off_policy import Estimates, Logged, estimate
from cascade_memory.domain.cost import Costs
from cascade_memory.insight.report import Arm, Bin, Calibration, Coverage, Learned, Report, ShadowReport
from cascade_memory.ports.policy import Judged

_ROUNDING = 1e-5  # possible rounding error of probabilities, which are stored in single precision


def is_one_choice(one: Judged) -> bool:
    """Say whether off-policy evaluation can use an episode: it has one recall of at most one case, and all candidates exist.

    An episode is left out if any of its candidates was forgotten, shown or not. Leaving out only the episodes that showed the
    forgotten case would bias the estimate, since the selection would depend on the action.
    """
    lost = one.lesson.shown and not len(one.lesson.chosen)  # forgotten by a version that did not set ``forgot`` yet
    return one.recalls == 1 and one.k == 1 and one.whole and not one.forgot and not lost


def logged(one: Judged, target: NDArray[np.float64]) -> Logged:
    """Return what off-policy evaluation needs of an episode: its logged choice, and another policy's probabilities ``target``.

    The last entry of ``target`` is the probability of showing nothing. Holding an episode out is one more way of showing
    nothing, and its probability is known.
    """
    n = len(one.lesson.slate)
    behaviour = np.append((1.0 - one.holdout) * np.asarray(one.propensity, np.float64), 0.0)
    nothing = 1.0 - float(behaviour.sum())
    behaviour[n] = nothing if nothing > _ROUNDING else 0.0
    baseline = 0.5 if not n and math.isnan(one.baseline) else one.baseline  # with only one action, any value cancels out
    return Logged(
        action=int(one.lesson.chosen[0]) if one.lesson.shown else n,
        reward=one.lesson.reward,
        behaviour=behaviour,
        target=target,
        expected=np.append(np.asarray(one.utility, np.float64), baseline),
    )


def with_nothing(propensity: NDArray[np.floating]) -> NDArray[np.float64]:
    """Append the probability of showing nothing to the probabilities of showing each candidate.

    >>> with_nothing(np.array([0.25, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    shows = np.asarray(propensity, np.float64)
    nothing = 1.0 - float(shows.sum())
    return np.append(shows, nothing if nothing > _ROUNDING else 0.0)


_BINS = 10


def report_of(
    judged: Sequence[Judged],
    opened: Mapping[str, int],
    namespace: str | None,
    learned: Learned | None,
    costs: Costs | None = None,
    alarms: tuple[str, ...] = (),
    *,
    more: tuple[tuple[str, str], ...] = (),
) -> Report:
    """Compute the report; ``opened`` counts the episodes that were assigned to each arm at random, judged or not."""
    rewards = [one.lesson.reward for one in judged]
    with_memory = [one for one in judged if one.arm == "live"]
    drawn = [one for one in judged if one.holdout > 0.0]
    return Report(
        namespace=namespace,
        episodes=len(judged),
        success=_mean(rewards),
        live=_arm(drawn, opened, "live"),
        holdout=_arm(drawn, opened, "holdout"),
        lift=_lift(drawn),
        shown=sum(one.showed for one in with_memory),
        with_memory=len(with_memory),
        coverage=_coverage(judged),
        calibration=_calibration(judged),
        shadow=_shadow(judged),
        with_choice=sum(len(one.lesson.slate) > 0 for one in judged),
        learned=learned,
        costs=costs,
        alarms=alarms,
        more=more,
        course=tuple((float(one.lesson.reward), one.showed) for one in judged),
    )


def _mean(rewards: list[float]) -> Interval | None:
    return intervals.mean(np.array(rewards)) if rewards else None


def _arm(drawn: Sequence[Judged], opened: Mapping[str, int], name: str) -> Arm:
    rewards = [one.lesson.reward for one in drawn if one.arm == name]
    return Arm(opened=opened.get(name, 0), judged=len(rewards), success=_mean(rewards))


def _lift(drawn: Sequence[Judged]) -> Interval | None:
    """Estimate by how much episodes with memory did better than held-out ones.

    An episode in which the memory abstained counts as one with memory: abstaining depends on the task, so such episodes are not
    comparable with the randomly held-out ones. Only episodes with the same holdout probability are compared with each other:
    when the user changes ``holdout``, the tasks and the memory may have changed as well. The differences are then averaged,
    weighted by their numbers of episodes.
    """
    parts: list[tuple[float, Interval]] = []
    for share in sorted({one.holdout for one in drawn}):
        arms = {
            arm: [one.lesson.reward for one in drawn if one.holdout == share and one.arm == arm] for arm in ("live", "holdout")
        }
        if arms["live"] and arms["holdout"]:
            found = intervals.difference(np.array(arms["live"]), np.array(arms["holdout"]))
            parts.append((float(len(arms["live"]) + len(arms["holdout"])), found))
    return intervals.pooled(parts) if parts else None


def _coverage(judged: Sequence[Judged]) -> Coverage:
    known = [one for one in judged if _is_compared(one)]
    return Coverage(
        solved=len(known),
        stored=sum(bool(_agrees(one).any()) for one in known),
        chosen=sum(_fits(one, _first(one)) for one in known),
    )


def _is_compared(one: Judged) -> bool:
    """Say whether it is known which candidates have the verified solution."""
    agreement = one.lesson.agreement
    return one.whole and agreement is not None and len(agreement) > 0 and not bool(np.isnan(agreement).any())


def _agrees(one: Judged) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    assert one.lesson.agreement is not None
    return np.asarray(one.lesson.agreement >= 0.5)


def _fits(one: Judged, place: int | None) -> bool:
    return place is not None and bool(_agrees(one)[place])


def _first(one: Judged) -> int | None:
    return int(one.lesson.chosen[0]) if len(one.lesson.chosen) else None


# -- predictions -------------------------------------------------------------------------------------------------------


def _calibration(judged: Sequence[Judged]) -> Calibration | None:
    pairs = [(predicted, one.lesson.reward) for one in judged if not math.isnan(predicted := prediction(one))]
    if not pairs:
        return None
    predicted, came = np.array(pairs).T
    place = np.minimum((predicted * _BINS).astype(int), _BINS - 1)
    bins = tuple(
        Bin(predicted=float(predicted[here].mean()), came=float(came[here].mean()), episodes=int(here.sum()))
        for number in range(_BINS)
        if (here := place == number).any()
    )
    return Calibration(
        predictions=len(pairs),
        predicted=float(predicted.mean()),
        came=float(came.mean()),
        brier=float(((predicted - came) ** 2).mean()),
        error=sum(one.episodes * abs(one.predicted - one.came) for one in bins) / len(pairs),
        bins=bins,
    )


def prediction(one: Judged) -> float:
    """Return the predicted success of what was shown: of the case, or of showing none; nan if there was no prediction."""
    if not one.lesson.shown:
        return one.baseline
    first = _first(one)
    return math.nan if first is None else float(one.utility[first])


# -- the shadow --------------------------------------------------------------------------------------------------------


def _shadow(judged: Sequence[Judged]) -> ShadowReport | None:
    """Report on the shadow that was used last."""
    watched = [one for one in judged if one.shadow is not None and one.whole]
    if not watched:
        return None
    policy = watched[-1].shadow
    assert policy is not None
    seen = [one for one in watched if one.shadow == policy]
    live = [one for one in seen if one.arm == "live"]
    compared = [one for one in live if _is_compared(one) and _agrees(one).any()]
    return ShadowReport(
        policy=policy,
        watched=len(seen),
        recalls=len(live),
        same=sum(_wished(one) == _showed(one) for one in live),
        compared=len(compared),
        fitting=sum(_fits(one, _wished(one)) for one in compared),
        live_fitting=sum(_fits(one, _showed(one)) for one in compared),
        value=_value(seen),
    )


def _wished(one: Judged) -> int | None:
    """Return the place of the candidate that the shadow would have shown first; None if it would have shown nothing."""
    places = np.flatnonzero(one.shadow_places == 1.0)
    return int(places[0]) if len(places) else None


def _showed(one: Judged) -> int | None:
    return _first(one) if one.lesson.shown else None


def _value(seen: Sequence[Judged]) -> Estimates | None:
    log = [logged(one, with_nothing(one.shadow_propensity)) for one in seen if is_one_choice(one)]
    return estimate(log) if log else None
