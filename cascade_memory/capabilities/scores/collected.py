"""What came of collecting scores, as counts and in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from cascade_memory.domain.display import counted
from cascade_memory.domain.quoting import quoted
from cascade_memory.visible import on_one_line

MOST_WHY, MOST_NAMES, _MOST_KINDS = 5, 5, 1_000
_NOUNS = {"human": "human", "judge": "judge", "code": "program", "agent": "agent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What ``collect`` did or, in a dry run, would find. Each score is counted once: from ``found`` to ``refused``.

    >>> print(Collected(scores=1_204, found={"human": 640, "judge": 171}, untraced=393, dry_run=True))
    of 1,204 scores 811 find an episode: 640 humans, 171 judges
    not used: 393 without a trace
    a dry run: nothing was stored
    """

    scores: int
    found: Mapping[str, int] = field(default_factory=dict[str, int])  # with an episode and a meaning, by kind of judge
    older: int = 0  # versions of a score of which a newer one is known
    untraced: int = 0  # without the id of a trace
    unknown: int = 0  # no episode of this namespace has recalled in their trace
    unmapped: Mapping[str, int] = field(default_factory=dict[str, int])  # by name: the weights do not have it
    unnumbered: Mapping[str, int] = field(default_factory=dict[str, int])  # by value: it means no number from 0 to 1
    refused: int = 0  # could not be read, or be taken: their trace has several episodes, for example
    why: tuple[str, ...] = ()  # sentences about the first of those, and about episodes whose outcome could not be changed
    rewarded: int = 0  # episodes whose outcome is new or another one now
    corrected: int = 0  # episodes with a new corrected case
    withdrawn: int = 0  # episodes that lost an outcome, because its scores were deleted
    dry_run: bool = False

    def __str__(self) -> str:
        """Say it in a few lines."""
        by = ", ".join(counted(self.found[kind], noun) for kind, noun in _NOUNS.items() if self.found.get(kind))
        finds = "finds" if (total := sum(self.found.values())) == 1 else "find"
        unused = {
            "older version" if self.older == 1 else "older versions": self.older,
            "without a trace": self.untraced,
            "whose trace has no episode here": self.unknown,
            f"not mapped ({_named(self.unmapped)})": sum(self.unmapped.values()),
            f"without a number from 0 to 1 ({_named(self.unnumbered)})": sum(self.unnumbered.values()),
            "refused": self.refused,
        }
        left = ", ".join(f"{count:,} {what}" for what, count in unused.items() if count)
        did = {"rewarded": self.rewarded, "corrected": self.corrected, "without an outcome again": self.withdrawn}
        done = ", ".join(f"{counted(count, 'episode')} {what}" for what, count in did.items() if count)
        lines = [
            f"of {counted(self.scores, 'score')} {total:,} {finds} an episode{f': {by}' if by else ''}",
            *([f"not used: {left}"] if left else []),
            *self.why,
            "a dry run: nothing was stored" if self.dry_run else done or "nothing was to be changed",
        ]
        return "\n".join(map(on_one_line, lines))


class Tally:
    """Counts while scores are collected."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.found, self.unmapped, self.unnumbered = Counter[str](), Counter[str](), Counter[str]()
        self._why: list[str] = []

    def refuse(self, why: str, *, score: bool = True) -> None:
        """Count a score that was refused, or note a sentence about an episode."""
        self.counts["refused"] += score
        if len(self._why) < MOST_WHY:
            self._why.append(why)

    def unnumber(self, value: object) -> None:
        """Count a value that means no number; after ``_MOST_KINDS`` different ones, all others together."""
        said = value[:40] if isinstance(value, str) else quoted(value)
        is_new = said not in self.unnumbered and len(self.unnumbered) >= _MOST_KINDS
        self.unnumbered["others" if is_new else said] += 1

    def collected(self, *, dry_run: bool) -> Collected:
        """Return what was counted."""
        names = ("scores", "older", "untraced", "unknown", "refused", "rewarded", "corrected", "withdrawn")
        return Collected(
            **{name: self.counts[name] for name in names},
            found=dict(self.found),
            unmapped=dict(self.unmapped),
            unnumbered=dict(self.unnumbered),
            why=tuple(self._why),
            dry_run=dry_run,
        )


def _named(counts: Mapping[str, int]) -> str:
    most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    more = f" and {len(most) - MOST_NAMES:,} more" if len(most) > MOST_NAMES else ""
    return ", ".join(f"{name}: {count:,}" for name, count in most[:MOST_NAMES]) + more
