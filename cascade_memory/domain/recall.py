"""What ``recall`` returns: the chosen cases, and why they were chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cascade_memory.domain.display import html_table, number, shorten
from cascade_memory.domain.trajectory import Solution, solution_text
from cascade_memory.domain.validation import MetadataValue
from cascade_memory.visible import shown_visibly, visible

_NOTABLE = -0.05  # of a record: what moves less is not told


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledCase:
    """A case that was chosen, with what the ranker thought of it.

    ``utility`` is the predicted success when this case is shown (nan when the ranker predicts none), ``uncertainty`` how
    unsure the ranker is of its place, ``score`` what the order was made of.
    """

    id: str
    query: str
    solution: Solution
    metadata: Mapping[str, MetadataValue]
    similarity: float
    utility: float
    uncertainty: float
    score: float


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A case that was considered.

    ``tried`` and ``succeeded`` are its record: how often its solution was shown for tasks like this one, each counted as far as
    it is alike, and how often that went well. They are looked up where they may decide, and 0 elsewhere.
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
    record: float = 0.0  # what its record adds to the value: nothing, or less


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why these cases and in this order; prints as a table, and as HTML in a notebook."""

    candidates: tuple[Candidate, ...]
    abstained: bool
    baseline: float
    rewards: int
    policy: str
    feature_names: tuple[str, ...] = ()
    arm: str = "live"

    @property
    def changes(self) -> tuple[str, ...]:
        """Say, for each candidate that left its place in the similarity order, from where to where and what moved it."""
        by_score = sorted(range(len(self.candidates)), key=lambda i: (-self.candidates[i].score, i))
        moved: list[str] = []
        for place, i in enumerate(by_score[:5]):
            if place != i:
                passed = [other for other in by_score[place + 1 :] if other < i]
                moved.append(f"{shorten(self.candidates[i].query, 40)!r}: {i + 1} -> {place + 1}{self._reason(i, passed)}")
        return tuple(moved)

    def _reason(self, i: int, passed: Sequence[int]) -> str:
        """Say in which signals candidate i is ahead of those that it passed."""
        if not passed:
            return ""
        ahead: list[tuple[float, str]] = []
        for feature, name in enumerate(self.feature_names[: len(self.candidates[i].contributions)]):
            others = sum(self.candidates[other].contributions[feature] for other in passed) / len(passed)
            ahead.append((self.candidates[i].contributions[feature] - others, name))
        best = [f"{name} {lead:+.1f}" for lead, name in sorted(ahead, reverse=True)[:2] if lead >= 0.05]
        return f" ({', '.join(best)})" if best else ""

    @property
    def records(self) -> tuple[str, ...]:
        """Say of each candidate that its own record has set back what that record is."""
        back = sorted((one for one in self.candidates if one.record <= _NOTABLE), key=lambda one: one.record)
        return tuple(
            f"{shorten(one.query, 40)!r}: shown {_times(one.tried)} for tasks like this one, "
            f"{number(one.succeeded)} of them successes ({one.record:+.1f})"
            for one in back[:5]
        )

    def _notes(self) -> list[str]:
        return [f"moved: {change}" for change in self.changes] + [f"its record: {record}" for record in self.records]

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
        """One sentence."""
        if self.arm == "holdout":
            return "held out: this episode runs without memory, so that its worth can be measured"
        if not self.candidates:
            return "no case was stored yet"
        behind = f"{self.rewards} {'reward stands' if self.rewards == 1 else 'rewards stand'} behind this"
        if self.abstained:
            best = next(one for one in self.candidates if one.chosen)
            return (
                f"no case was shown: success predicted {number(best.utility)} with the best one, "
                f"{number(self.baseline)} without; {behind}"
            )
        return f"chosen by {self.policy} from {len(self.candidates)} candidates; {behind}"

    def __repr__(self) -> str:
        """Return one line; ``print`` shows the table."""
        return f"Explanation({self.summary})"

    def __str__(self) -> str:
        """Return a plain-text table."""
        head = ["", "similarity", "utility", "uncertainty", "score", "query"]
        rows = [head, *self._rows()] if self.candidates else []
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))] if rows else []
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.summary, *table, *self._notes()])

    def _repr_html_(self) -> str:
        head = ("", "similarity", "utility", "uncertainty", "score", "query")
        return html_table(self.summary, head, self._rows(), notes=self._notes())


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The cases chosen for a task, and the id under which its reward is reported."""

    id: str
    episode_id: str
    namespace: str
    query: str
    cases: tuple[RecalledCase, ...]
    abstained: bool  # cases were found, and none was expected to help
    arm: str = "live"  # or "holdout": drawn to run without memory, whatever it knows
    error: str | None = None  # what failed: finding cases, or, where there are some, writing down that they are shown
    template: Callable[[Sequence[RecalledCase]], str]
    explainer: Callable[[], Explanation]  # most recalls are never explained: the table is made when asked for

    def render(self, template: Callable[[Sequence[RecalledCase]], str] | None = None) -> str:
        """Return the cases as fenced text to put before a task; empty when there are none."""
        return (template or self.template)(self.cases)

    def explain(self) -> Explanation:
        """Return why these cases were chosen."""
        return self.explainer()

    def __len__(self) -> int:
        """Return the number of cases."""
        return len(self.cases)

    def __repr__(self) -> str:
        """Return one short line: the cases themselves may be long, and are not to be trusted."""
        found, error = f"{len(self.cases)} cases", visible(self.error or "")
        state = found if self.error is None else f"{found}, unrecorded: {error}" if self.cases else f"failed: {error}"
        return f"Recall({state}, episode_id={visible(repr(self.episode_id))})"

    def _repr_html_(self) -> str:
        rows = [
            [shorten(case.query, 80), shorten(solution_text(case.solution), 120), number(case.similarity), number(case.utility)]
            for case in self.cases
        ]
        why = self.explain()
        title = f"{len(self.cases)} of {len(why.candidates)} cases for {shorten(self.query, 80)!r}"
        notes = [why.summary, f"episode {self.episode_id}"]
        if self.error is not None:
            notes.insert(0, f"recall {'was not written down' if self.cases else 'failed'}: {self.error}")
        return html_table(title, ("query", "solution", "similarity", "utility"), rows, notes=notes)


def _times(count: float) -> str:
    rounded = round(count)
    return "once" if rounded == 1 else f"{rounded} times"
