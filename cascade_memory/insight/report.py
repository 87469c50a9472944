"""The result of ``memory.report()``: how much the memory helps, how good its predictions are, and what was learned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from cascade_memory.bandit.intervals import Interval
from cascade_memory.bandit.off_policy import Estimates
from cascade_memory.domain.cost import Costs
from cascade_memory.domain.display import counted, number
from cascade_memory.insight.plot import success_panel
from cascade_memory.looks.card import Card, Facts, Grid, Notes, Picture
from cascade_memory.ports.policy import Policy, SaysWhatItLearned
from cascade_memory.visible import on_one_line

_NOTABLE = 0.1  # smallest change of a weight that is told
_WINDOW = 50  # episodes in each mean of the picture


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """The episodes that were assigned to one arm at random: how many were opened and judged, and their mean reward."""

    opened: int
    judged: int
    success: Interval | None

    def __str__(self) -> str:
        """Format as one line."""
        return f"{_level(self.success)}, {self.judged:,} of {counted(self.opened, 'episode')} judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Episodes with about the same predicted success; ``came`` is their mean reward."""

    predicted: float
    came: float
    episodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Predicted success against the observed rewards.

    ``predicted`` and ``came`` are their means, ``brier`` is the mean squared error, and ``error`` the mean distance between
    prediction and reward over the bins.
    """

    predictions: int
    predicted: float
    came: float
    brier: float
    error: float
    bins: tuple[Bin, ...]

    def __str__(self) -> str:
        """Format as one line."""
        return (
            f"{number(self.predicted)} predicted, {number(self.came)} observed; "
            f"Brier {number(self.brier)}, calibration error {number(self.error)} over {counted(self.predictions, 'episode')}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often the verified solution was among the stored cases.

    ``solved`` counts the solved episodes whose solution could be compared; in ``stored`` of them some candidate had that
    solution, in ``chosen`` of them the chosen case had it.
    """

    solved: int
    stored: int
    chosen: int

    def __str__(self) -> str:
        """Format as one line."""
        solved = f"{self.solved:,} solved episodes"
        return f"a candidate had the solution in {self.stored:,} of {solved}, the chosen case in {self.chosen:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowReport:
    """What the shadow would have done: how often the same as the ranker, how often right, and the estimated mean reward.

    ``watched`` counts the episodes in which the shadow made a choice. ``recalls`` counts those of them with memory, and
    ``same`` those in which both made the same choice. ``compared`` counts the solved episodes in which some candidate had the
    verified solution: in ``fitting`` of them, the first choice of the shadow had it; in ``live_fitting`` of them, the first
    choice of the ranker had it. ``value`` is the estimate of the mean reward with the shadow's choices.
    """

    policy: str
    watched: int
    recalls: int
    same: int
    compared: int
    fitting: int
    live_fitting: int
    value: Estimates | None

    @staticmethod
    def _bounds(value: Estimates) -> str:
        never = f"the ranker could never have made {100 * value.uncovered:.0f} % of these choices"
        bounds = f"it lies between {number(value.bounds.low)} and {number(value.bounds.high)}"
        return f"{never}; {bounds}; the more is explored (explore=), the narrower this gets"

    def lines(self) -> list[str]:
        """Describe the results in lines of text."""
        same = _share(self.same, self.recalls)
        lines = [f"{self.policy}: the same choice as the ranker in {same} of {counted(self.recalls, 'episode')}"]
        if self.compared:
            lines.append(
                f"where a candidate had the solution ({self.compared:,} solved episodes), it would have shown a right case in "
                f"{_share(self.fitting, self.compared)}, and the ranker showed one in "
                f"{_share(self.live_fitting, self.compared)}"
            )
        if self.value is None:
            lines.append("its mean reward is not known: that needs episodes with one recall of at most one case")
        elif (level := self.value.robust or self.value.normalised) is not None:
            lines.append(f"its mean reward would have been {_level(level)}")
        else:
            lines.append(f"its mean reward cannot be estimated: {self._bounds(self.value)}")
        if self.value is not None:
            lines[-1] += self._of_how_many(self.value)
        return lines

    def _of_how_many(self, value: Estimates) -> str:
        if value.episodes >= self.watched:
            return ""
        of_one_choice = "those with one recall of at most one case and no forgotten candidate"
        return f" (from {value.episodes:,} of {counted(self.watched, 'episode')}, including held-out ones: {of_one_choice})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Results from the judged episodes. It prints as lines, and in a notebook as a table.

    ``success`` is the mean reward of all of them; ``live`` and ``holdout`` are the arms to which episodes were assigned at
    random, whatever was shown in the end; ``lift`` is the mean reward of the live arm minus that of the holdout arm, with
    its 95 % interval.
    """

    namespace: str | None
    episodes: int
    success: Interval | None
    live: Arm
    holdout: Arm
    lift: Interval | None
    shown: int
    with_memory: int
    coverage: Coverage
    calibration: Calibration | None
    shadow: ShadowReport | None
    with_choice: int = 0  # episodes in which there was at least one candidate
    learned: Learned | None = None  # None for all namespaces together, and for rankers that cannot say
    costs: Costs | None = None  # of this process alone, and so not among the rows, which are the same in every process
    alarms: tuple[str, ...] = ()  # about actors, in the namespaces that this process has used: a person should look at them
    more: tuple[tuple[str, str], ...] = ()  # rows of capabilities
    course: tuple[tuple[float, bool], ...] = field(default=(), repr=False, compare=False)  # for the picture in a notebook

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain values, ready for JSON."""
        plain = asdict(replace(self, course=()))
        del plain["course"]
        return {**plain, "notes": list(self.notes)}

    @property
    def notes(self) -> tuple[str, ...]:
        """Name the results that are not known, and say what would change that."""
        notes: list[str] = []
        if not self.episodes:
            return ("no episode has been judged yet; reward() judges one",)
        if self.lift is None:
            notes.append(self._why_no_lift())
        if self.calibration is None:
            unpredicted = "the ranker does not predict success (ranker='light' does)"
            nothing = "no judged episode had a case to choose from"
            notes.append(f"calibration is not known: {unpredicted if self.with_choice else nothing}")
        if not self.coverage.solved:
            notes.append("coverage is not known: no success had a solution that could be compared")
        return tuple(notes)

    def _why_no_lift(self) -> str:
        if not self.live.opened + self.holdout.opened:
            return "lift is not known: no episode ran without memory; set holdout=0.05"
        arm = "held-out episode" if not self.holdout.judged else "episode with memory, opened while holdout was set,"
        return f"lift is not known: no {arm} has been judged yet"

    def rows(self) -> list[tuple[str, str]]:
        """List the rows of the table, each with a name and a value."""
        found = [
            ("namespace", self.namespace if self.namespace is not None else "all"),
            ("episodes", f"{self.episodes:,} judged, mean reward {_level(self.success)}"),
        ]
        if self.holdout.opened or self.live.opened:
            found += [("with memory", str(self.live)), ("without", str(self.holdout))]
        if self.lift is not None:
            found.append(("lift", str(self.lift)))
        if self.with_memory:
            found.append(("shown", f"a case in {_share(self.shown, self.with_memory)} of the episodes with memory"))
        if self.coverage.solved:
            found.append(("coverage", str(self.coverage)))
        if self.calibration is not None:
            found.append(("calibration", str(self.calibration)))
        if self.learned is not None:
            found += zip(("learned", "", ""), self.learned.lines(), strict=False)
        if self.shadow is not None:
            found += zip(("shadow", "", ""), self.shadow.lines(), strict=False)
        found += self.more
        found += (("alarm", alarm) for alarm in self.alarms)
        return found

    def __repr__(self) -> str:
        """Summarise in one line; ``print`` shows everything."""
        lift = "unknown" if self.lift is None else str(self.lift)
        return f"Report({counted(self.episodes, 'episode')}, lift {lift})"

    def __str__(self) -> str:
        """Format as lines of text; numbers in brackets are 95 % intervals."""
        return "\n".join([*(f"{name:<12}{on_one_line(value)}" for name, value in self.rows()), *map(on_one_line, self.notes)])

    def _repr_html_(self) -> str:
        bins = self.calibration.bins if self.calibration is not None else ()
        curve = [[number(one.predicted), number(one.came), f"{one.episodes:,}"] for one in bins]
        parts = [
            Picture([success_panel(self.course, _WINDOW)] if self.course else [], height=170.0),
            Facts(self.rows()),
            Grid(["success predicted", "observed", "episodes"], curve, numbers=range(3)),
            Notes(self.notes),
        ]
        return Card("Memory report", self._in_words(), parts).html()

    def _in_words(self) -> str:
        if self.lift is None:
            return "" if self.success is None else f"mean reward {_level(self.success)}"
        points = [100 * one for one in (self.lift.estimate, self.lift.low, self.lift.high)]
        helps = "helps" if points[1] > 0 else "harms" if points[2] < 0 else "is not known to help"
        return f"the memory {helps}: {points[0]:+.1f} points of reward ({points[1]:+.1f} to {points[2]:+.1f})"


def _level(value: Interval | None) -> str:
    if value is None:
        return "–"
    return f"{number(value.estimate)} ({number(max(value.low, 0.0))} to {number(min(value.high, 1.0))})"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"
