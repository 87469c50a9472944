"""Counts, health and the receipt of ``forget``, with their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cascade_memory.domain.display import all_counted, counted, no_namespace, number
from cascade_memory.looks.card import Card, Facts, Notes
from cascade_memory.visible import on_one_line, shown_visibly

_UNKEPT = {
    "below": "below retain_at",
    "solution": "without a solution",
    "source": "from a source that retain_from excludes",
    "capped": "beyond reward_caps: they teach nothing either",
}
_CHROMA = {  # what is said of the copy of all cases in Chroma, which other tools can read
    "clean": "its copy of the cases is closed: nothing is being written",
    "open": "cases are being copied into it",
    "follower": "another process copies the cases into it",
    "rebuilding": "its copy of the cases is being made anew",
    "failing": "copying the cases failed, and is tried again; recalls do not need it",
}


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Counts of one namespace, or of all.

    ``reported`` counts those ``settled`` episodes that only their agent has judged: they wait for somebody to confirm them.
    """

    namespace: str | None
    cases: int
    copies: int
    solutions: int
    episodes: int
    open: int
    settled: int
    censored: int
    expired: int
    recalls: int
    shown: int
    rewards: int
    mean_reward: float | None  # None if there are no rewards
    policy: str
    policy_version: int
    embedder: str
    # Rewards above 0 that stored no case, by reason; and all that teach nothing, since their actor has reported too many.
    unkept: Mapping[str, int] = field(default_factory=dict[str, int])
    exists: bool = True  # False if nothing was ever stored in the namespace
    reported: int = 0
    more: Mapping[str, int] = field(default_factory=dict[str, int])  # what capabilities keep, by the noun that lists it
    namespaces: tuple[str, ...] = ()  # the existing namespaces, for a message if this one does not exist

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain values, ready for JSON; what is in ``more`` stands beside the other counts."""
        plain = asdict(self)
        more = plain.pop("more")
        return {**plain, **more}

    def rows(self) -> list[tuple[str, str]]:
        """List the rows of the table, each with a name and a value."""
        of = f"{self.cases:,} ({counted(self.solutions, 'distinct solution')}, {counted(self.copies, 'verification')})"
        states = (
            f"{self.episodes:,} ({self.open:,} open, {self.settled - self.reported:,} rewarded, "
            f"{self.censored:,} censored, {self.expired:,} expired)"
        )
        waiting = (
            "only their agent has judged them; cascade-memory review pending shows them, memory.review.reported() returns them"
        )
        return [
            ("namespace", self._whose()),
            ("cases", of),
            ("episodes", states),
            *([("to confirm", f"{self.reported:,} more episodes: {waiting}")] if self.reported else []),
            ("recalls", f"{self.recalls:,}, {self.shown:,} of them showed a case"),
            ("mean reward", "none yet" if self.mean_reward is None else number(self.mean_reward)),
            *([("not kept", self._why_unkept())] if any(self.unkept.values()) else []),
            *((noun, f"{count:,}; memory.{noun}.all() lists them") for noun, count in self.more.items() if count),
            ("ranker", f"{self.policy}, version {self.policy_version}"),
            ("embedder", self.embedder),
        ]

    def _whose(self) -> str:
        if self.namespace is None:
            return "all; --namespace NAME counts one"
        return self.namespace if self.exists else no_namespace(self.namespace, self.namespaces)

    def _why_unkept(self) -> str:
        causes = ", ".join(f"{count:,} {_UNKEPT[why]}" for why, count in self.unkept.items() if count)
        return f"{sum(self.unkept.values()):,} of the rewards stored no case ({causes})"

    def __str__(self) -> str:
        """Format as a plain-text table."""
        return "\n".join(f"{name:<12}{on_one_line(value)}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        return Card("Memory", counted(self.cases, "case"), [Facts(self.rows())]).html()


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of a memory. ``ok`` is False if something failed without raising an exception in the caller.

    ``unblamed`` counts the failed runs of this process from which no warning was made, by reason.
    """

    ok: bool
    failures: Mapping[str, int] = field(default_factory=dict[str, int])
    last_error: str | None = None
    chroma: str = "none"
    chroma_lag: int = 0
    learning: str = "background"
    free_disk_bytes: int | None = None
    read_only: str | None = None  # why nothing can be written
    database: str | None = None  # where a memory is that is in no folder
    log_lag: int = 0  # lines of the log that this process has not read yet
    leases: Mapping[str, str] = field(default_factory=dict[str, str])  # which worker does what for all of them
    alarms: tuple[str, ...] = ()  # about actors, in the namespaces that this process has used: a person should look at them
    unblamed: Mapping[str, int] = field(default_factory=dict[str, int])

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain values, ready for JSON."""
        return asdict(self)

    def _copy(self) -> str:
        meaning = f" ({_CHROMA[self.chroma]})" if self.chroma in _CHROMA else ""
        return f"{self.chroma}{meaning}, {counted(self.chroma_lag, 'change')} behind"

    def rows(self) -> list[tuple[str, str]]:
        """List the rows of the table, each with a name and a value."""
        nobody = ", ".join(f"{count:,}: {why}" for why, count in self.unblamed.items())
        failed = ", ".join(f"{count} x {step}" for step, count in self.failures.items())
        free = "–" if self.free_disk_bytes is None else f"{self.free_disk_bytes / 2**30:,.1f} GiB free"
        return [
            ("health", "ok" if self.ok else "failing"),
            ("failures", failed or "none"),
            ("last error", self.last_error or "–"),
            ("chroma", self._copy()),
            ("learning", self.learning),
            ("disk", free) if self.database is None else ("database", f"{self.database}, {self.log_lag:,} lines behind"),
            *(("lease", f"{job}: {holder}") for job, holder in self.leases.items()),
            *(("alarm", alarm) for alarm in self.alarms),
            *([("no warning", f"of failed runs, {nobody}")] if nobody else []),
            *([] if self.read_only is None else [("read-only", self.read_only)]),
        ]

    def __str__(self) -> str:
        """Format as a plain-text table."""
        return "\n".join(f"{name:<12}{on_one_line(value)}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        said = "✓ ok" if self.ok else "✗ failing"
        return Card("Health", said, [Facts(self.rows()[1:])], state="good" if self.ok else "bad").html()


COUNTED = ("cases", "episodes", "recalls", "outcomes")  # in each receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What ``forget`` deleted. ``more`` counts further rows by name, if there were any.

    Its "decisions" are what a source had decided, for example about cases, and what was taken back with it; its "warnings" are
    the failures from which warnings are made.

    ``purged`` says that no file of the memory holds a byte of the deleted data any more; ``stale`` names things that may still
    hold some of it, and says what to do about them. ``names`` says where the name of a purged namespace or actor stays on
    purpose; texts stay only of episodes of the actor that somebody else has judged. After all that came from a source was
    forgotten, ``brought_back`` are the ids of the cases that had been evicted to make room for those of the source, and are
    back; ``made_after`` are the ids of the cases that others made after they had seen cases of the source: these stay.
    """

    cases: int = 0
    episodes: int = 0
    recalls: int = 0
    outcomes: int = 0
    purged: bool = False
    stale: tuple[str, ...] = ()
    brought_back: tuple[str, ...] = ()
    made_after: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    more: Mapping[str, int] = field(default_factory=dict[str, int], repr=False)

    @property
    def counts(self) -> dict[str, int]:
        """How much was deleted, by name; ``more`` has only what there was."""
        return {**{name: getattr(self, name) for name in COUNTED}, **self.more}

    def summary(self) -> str:
        """Describe the counts in words."""
        return "; ".join(
            [
                all_counted(self.counts),
                *([f"{counted(len(self.brought_back), 'case')} brought back"] if self.brought_back else []),
            ]
        )

    def _repr_html_(self) -> str:
        rows = [
            ("deleted", self.summary()),
            ("purged", "yes: no file of the memory holds a byte of it" if self.purged else "no"),
        ]
        more = [f"may still hold some of it: {one}" for one in self.stale] + [f"a name stays: {one}" for one in self.names]
        if self.made_after:
            more.append(f"staying, since others made them after they had seen it: {counted(len(self.made_after), 'case')}")
        return Card("Forgotten", parts=[Facts(rows), Notes(more)]).html()

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain values, ready for JSON."""
        plain = asdict(self)
        more = plain.pop("more")
        return {**{name: value for name, value in plain.items() if name != "names" or value}, **more}
