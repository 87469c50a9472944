"""Why a recall chose these cases, and in this order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cascade_memory.domain.display import counted, number, shorten
from cascade_memory.visible import on_one_line, shown_visibly

_NOTABLE = 0.05  # a record with a smaller effect than this is not mentioned
_NOTABLE_EASE = 0.02  # the same for tasks that are easier or harder than usual


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A case that was considered.

    ``tried`` and ``succeeded`` are the record of its solution, and of solutions made from it: how often these were shown for
    tasks like this one, weighted by how similar those tasks are, and how often that went well. A record is looked up only if
    it may change the choice; otherwise both are 0.
    """

    id: str
    query: str
    similarity: float
    value: float
    uncertainty: float
    score: float
    utility: float
    chosen: bool
    contributions: tuple[float, ...] = ()  # what each feature adds to the value
    tried: float = 0.0
    succeeded: float = 0.0
    record: float = 0.0  # what its record adds to the value
    floor: float = -1.0  # the similarity that a case which has nothing to do with the task may reach by chance


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """A similar case that was not considered in this episode; ``why`` is the reason, such as what is known of its actor."""

    id: str
    actor: str | None
    similarity: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why these cases were chosen, and in this order; it prints as a table, and in a notebook as HTML."""

    candidates: tuple[Candidate, ...]
    abstained: bool
    baseline: float
    rewards: int
    policy: str
    feature_names: tuple[str, ...] = ()
    arm: str = "live"
    ease: float = 0.0  # how much likelier than usual success is on tasks like this one, whatever is shown
    failure: str | None = None  # why the recall found nothing, if it failed
    trust: float = math.nan  # how far rewards may change the weights of the signals (0 to 1), where only rewards teach
    held: tuple[HeldBack, ...] = ()  # the most similar first
    paused: int = 0  # for how many more outcomes nothing is shown, since cases have cost successes here

    @property
    def changes(self) -> tuple[str, ...]:
        """Those of the first five candidates that rank higher than by similarity alone.

        Each text has the old place of the candidate, the new one, and the reason.
        """
        by_score = sorted(range(len(self.candidates)), key=lambda i: (-self.candidates[i].score, i))
        moved: list[str] = []
        for place, i in enumerate(by_score[:5]):
            if place < i:
                passed = [other for other in by_score[place + 1 :] if other < i]
                moved.append(f"{shorten(self.candidates[i].query, 40)!r}: {i + 1} -> {place + 1}{self._reason(i, passed)}")
        return tuple(moved)

    def _reason(self, i: int, passed: Sequence[int]) -> str:
        """Say in what candidate i is better than those that it passed."""
        this, others = self.candidates[i], [self.candidates[other] for other in passed]
        ahead = [(this.record - sum(other.record for other in others) / len(others), "record")]
        for feature, name in enumerate(self.feature_names[: len(self.candidates[i].contributions)]):
            mean = sum(other.contributions[feature] for other in others) / len(others)
            ahead.append((this.contributions[feature] - mean, name))
        best = [f"{name} {lead:+.1f}" for lead, name in sorted(ahead, reverse=True)[:2] if lead >= 0.05]
        if not best and this.uncertainty > max(other.uncertainty for other in others):
            best = ["less is known of it, so it is tried"]
        return f" ({', '.join(best)})" if best else ""

    @property
    def records(self) -> tuple[str, ...]:
        """Describe at most five records that moved a candidate, beginning with the record that moved its candidate furthest."""
        moved = sorted((one for one in self.candidates if abs(one.record) >= _NOTABLE), key=lambda one: -abs(one.record))
        return tuple(
            f"{shorten(one.query, 40)!r}: shown {_times(one.tried)} for tasks like this one, "
            f"{number(one.succeeded)} of them successes ({one.record:+.1f})"
            for one in moved[:5]
        )

    def _notes(self) -> list[str]:
        notes = [f"moved: {change}" for change in self.changes] + [f"its record: {record}" for record in self.records]
        if abs(self.ease) >= _NOTABLE_EASE:
            points = round(100 * abs(self.ease))
            notes.append(f"tasks like this one succeed {points} points {'more' if self.ease > 0 else 'less'} often than usual")
        if not math.isnan(self.trust):
            notes.append(
                f"solutions do not recur here, so only rewards teach; trust in them for the signals: {self.trust:.2f} of 1"
            )
        for (actor, why), count in list(Counter((one.actor, one.why) for one in self.held).items())[:5]:
            whose = "" if actor is None else f" of {actor!r}"
            notes.append(f"held back in this episode: {count} {'case' if count == 1 else 'cases'}{whose}, {why}")
        return notes

    def _rows(self) -> list[list[str]]:
        ranked = sorted(self.candidates, key=lambda one: (not one.chosen, -one.score))
        return [
            [
                "" if not one.chosen else "best" if self.abstained or self.arm == "holdout" else "shown",
                number(one.similarity),
                number(one.utility),
                number(one.uncertainty),
                number(one.score),
                shorten(one.query, 60),
            ]
            for one in ranked[:10]
        ]

    @property
    def summary(self) -> str:
        """The explanation in one sentence."""
        if self.arm == "holdout":
            return "held out: this episode runs without memory, so that the worth of the memory can be measured"
        if self.failure is not None:
            return f"the recall failed: {on_one_line(self.failure)}"
        if not self.candidates:
            return "all cases that were found are held back" if self.held else "no case was stored yet"
        behind = f"{self.rewards} {'reward stands' if self.rewards == 1 else 'rewards stand'} behind this"
        if self.abstained:
            best = next(one for one in self.candidates if one.chosen)
            if all(one.similarity < one.floor for one in self.candidates):
                nearest = max(self.candidates, key=lambda one: one.similarity)
                return (
                    f"no case was shown: none is related to the task (the most similar one has {number(nearest.similarity)}, "
                    f"and unrelated texts reach {number(nearest.floor)}); {behind}"
                )
            if self.paused:
                rest = counted(self.paused, "outcome")
                return f"no case was shown: cases cost successes here, so the next one is tried after {rest}; {behind}"
            expected = f"success predicted {number(best.utility)} with the best one, {number(self.baseline)} without"
            chance = ": neither is certain, so chance decided" if best.utility >= self.baseline else ""
            return f"no case was shown: {expected}{chance}; {behind}"
        return f"chosen by {self.policy} from {counted(len(self.candidates), 'candidate')}; {behind}"

    def __repr__(self) -> str:
        """Summarise in one line; ``print`` shows the table."""
        return f"Explanation({self.summary})"

    def __str__(self) -> str:
        """Format as a plain-text table."""
        head = ["", "similarity", "utility", "uncertainty", "score", "query"]
        rows = [head, *self._rows()] if self.candidates else []
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))] if rows else []
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.summary, *table, *self._notes()])

    def _repr_html_(self) -> str:
        from cascade_memory.looks.card import Card, Grid, Notes

        head = ("", "similarity", "utility", "uncertainty", "score", "query")
        return Card("Why", self.summary, [Grid(head, self._rows(), numbers=range(1, 5)), Notes(self._notes())]).html()


def _times(count: float) -> str:
    rounded = round(count)
    return "once" if rounded == 1 else counted(rounded, "time")
