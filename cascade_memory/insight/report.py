"""What ``memory.report()`` says: is the memory worth having, and may its predictions be believed?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cascade_memory.bandit.intervals import Interval
from cascade_memory.bandit.off_policy import Estimates
from cascade_memory.domain.display import html_table, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """The episodes that chance put in one arm: how many were opened and judged, and their mean reward."""

    opened: int
    judged: int
    success: Interval | None

    def __str__(self) -> str:
        """Return one line."""
        return f"{_level(self.success)}, {self.judged:,} of {self.opened:,} episodes judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Episodes of which about the same success was predicted."""

    predicted: float
    came: float
    episodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Predicted success against what came: ``brier`` is the mean squared error, ``error`` the mean distance over bins."""

    predictions: int
    predicted: float
    came: float
    brier: float
    error: float
    bins: tuple[Bin, ...]

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"{number(self.predicted)} predicted, {number(self.came)} came; "
            f"Brier {number(self.brier)}, calibration error {number(self.error)} over {self.predictions:,} episodes"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Of the solved episodes whose solution could be compared: in how many a candidate, and the one chosen, had it."""

    solved: int
    stored: int
    chosen: int

    def __str__(self) -> str:
        """Return one line."""
        solved = f"{self.solved:,} solved episodes"
        return f"a candidate had the solution in {self.stored:,} of {solved}, the one chosen in {self.chosen:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowReport:
    """What the shadow would have done: how often the same, how often right, and what that would have given, if that is known.

    ``watched`` counts the episodes in which it had an opinion, ``recalls`` those of them with memory. ``fitting`` and
    ``live_fitting`` count the solved episodes in which the shadow's first choice, and the one of the ranker,
    had the verified solution, of ``compared``.
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
        never = f"{100 * value.uncovered:.0f} % of its choices could not have been made"
        return f"{never}; between {number(value.bounds.low)} and {number(value.bounds.high)}, and explore=0.1 tells more"

    def lines(self) -> list[str]:
        """Return what there is to say."""
        said = [f"{self.policy}: the same choice in {_share(self.same, self.recalls)} of {self.recalls:,} episodes"]
        if self.compared:
            said.append(
                f"where a candidate had the solution ({self.compared:,} solved episodes) it would have shown one in "
                f"{_share(self.fitting, self.compared)}, the ranker chose one in {_share(self.live_fitting, self.compared)}"
            )
        if self.value is None:
            said.append("what it would have given: not known without an episode of one recall of at most one case")
        elif (level := self.value.robust or self.value.normalised) is not None:
            said.append(f"would have given {_level(level)}")
        else:
            said.append(f"what it would have given is not identified: {self._bounds(self.value)}")
        if self.value is not None:
            said[-1] += self._of_how_many(self.value)
        return said

    def _of_how_many(self, value: Estimates) -> str:
        if value.episodes >= self.watched:
            return ""
        of_one_choice = "of one recall of at most one case, none of whose candidates was forgotten"
        return f" (from {value.episodes:,} of {self.watched:,} episodes, held out ones among them: those {of_one_choice})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the judged episodes say. Prints as lines, and as a table in a notebook.

    ``success`` is over all of them; ``live`` and ``holdout`` are the arms that chance put episodes in, whatever was shown there
    in the end; ``lift`` is by how much the live one is ahead, with its 95 % interval.
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
    with_choice: int = 0  # episodes in which there was a case to choose

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {**asdict(self), "notes": list(self.notes)}

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what cannot be said, and what would change that."""
        said: list[str] = []
        if not self.episodes:
            return ("no episode was judged yet: reward() does that",)
        if self.lift is None:
            said.append(self._why_no_lift())
        if self.calibration is None:
            unpredicted = "the ranker in charge predicted no success (ranker='light' does)"
            nothing = "no episode that was judged had a case to choose from"
            said.append(f"calibration is not known: {unpredicted if self.with_choice else nothing}")
        if not self.coverage.solved:
            said.append("coverage is not known: no success came with a solution that could be compared")
        return tuple(said)

    def _why_no_lift(self) -> str:
        if not self.live.opened + self.holdout.opened:
            return "lift is not known: no episode ran without memory; set holdout=0.05"
        arm = "was held out" if not self.holdout.judged else "ran with memory beside those that were held out"
        return f"lift is not known: no episode that {arm} has been judged yet"

    def rows(self) -> list[tuple[str, str]]:
        """Return what a table shows."""
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
        if self.shadow is not None:
            found += zip(("shadow", "", ""), self.shadow.lines(), strict=False)
        return found

    def __repr__(self) -> str:
        """Return one line; ``print`` shows all."""
        lift = "unknown" if self.lift is None else str(self.lift)
        return f"Report({self.episodes:,} episodes, lift {lift})"

    def __str__(self) -> str:
        """Return lines of text; numbers in brackets are 95 % intervals."""
        return "\n".join([*(f"{name:<12}{value}" for name, value in self.rows()), *self.notes])

    def _repr_html_(self) -> str:
        bins = self.calibration.bins if self.calibration is not None else ()
        curve = [f"predicted {number(one.predicted)}, came {number(one.came)} in {one.episodes:,} episodes" for one in bins]
        return html_table("memory report", ("", ""), [list(row) for row in self.rows()], notes=[*self.notes, *curve])


def _level(value: Interval | None) -> str:
    if value is None:
        return "–"
    return f"{number(value.estimate)} ({number(max(value.low, 0.0))} to {number(min(value.high, 1.0))})"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"
