"""Who wrote what: the filter by which rows are asked for, and the counts for each source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from cascade_memory.domain.actions import check_known_actor
from cascade_memory.domain.case import Case
from cascade_memory.domain.trust import LEVELS, check_channel, check_min_trust
from cascade_memory.domain.validation import moment_of
from cascade_memory.visible import shown_visibly

NOBODY_NAMED = ""  # as an actor: only what nobody is named for


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose rows are wanted, and from when: ``since`` is the first moment, ``until`` the first moment that is too late."""

    actor: str | None = None
    channel: str | None = None
    since: float | None = None
    until: float | None = None
    trust: int | None = None

    @classmethod
    def of(
        cls, actor: object = None, channel: object = None, since: object = None, until: object = None, trust: object = None
    ) -> Wanted:
        """Check what a user asks for.

        >>> Wanted.of(actor="ann", trust="judge")
        Wanted(actor='ann', channel=None, since=None, until=None, trust=2)
        """
        return cls(
            actor=NOBODY_NAMED if type(actor) is str and actor == NOBODY_NAMED else check_known_actor(actor),
            channel=None if channel is None else check_channel(channel),
            since=moment_of(since, "since"),
            until=moment_of(until, "until"),
            trust=check_min_trust(trust, "trust"),
        )

    def __bool__(self) -> bool:
        """Say whether any condition is set."""
        return self != Wanted()

    def described(self) -> str:
        """Describe in words whose rows are wanted.

        >>> Wanted.of(actor="ann", channel="mcp", since=0).described()
        "actor 'ann', channel 'mcp', since 1970-01-01T00:00:00+00:00"
        """
        said = [] if self.actor is None else [f"actor {self.actor!r}" if self.actor else "nobody named"]
        said += [] if self.channel is None else [f"channel {self.channel!r}"]
        for name, moment in (("since", self.since), ("until", self.until)):
            said += [] if moment is None else [f"{name} {datetime.fromtimestamp(moment, timezone.utc).isoformat()}"]
        return ", ".join(said)

    def fits(self, one: Case | ChangedCase) -> bool:
        """Say whether a case is wanted."""
        at = one.created_at if isinstance(one, Case) else one.at
        return (
            (self.actor is None or one.actor == (self.actor or None))
            and (self.channel is None or one.channel == self.channel)
            and (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
            and (self.trust is None or one.trust == self.trust)
        )


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """What came from an actor through a channel; None means that the actor, or the channel, was not named.

    ``outcomes`` counts the outcomes that the actor reported, and those of the actor's episodes for which no reporter was named;
    ``mean_reward`` is their mean reward. ``shown`` and ``succeeded`` say how often the actor's cases were shown, and with what
    total reward.
    """

    actor: str | None
    channel: str | None
    cases: int = 0
    episodes: int = 0
    outcomes: int = 0
    mean_reward: float | None = None
    shown: int = 0
    succeeded: float = 0.0
    first_seen: float = 0.0
    last_seen: float = 0.0


@shown_visibly
@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCase:
    """A case that was stored, or that was set aside: ``why`` is "stored", "expired" or "evicted"."""

    id: str
    query: str  # its beginning
    actor: str | None
    channel: str | None
    source: str
    trust: int
    at: float
    why: str


def level_of(source: object) -> int:
    """Return the trust level of a stored source; 0, the lowest, if the source is unknown."""
    return LEVELS.get(str(source), 0)
