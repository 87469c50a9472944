"""Reward tickets: a recall hands one out, and a reward from outside has to bring it back while it is good."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta

from cascade_memory.domain.digests import Signed, Signing
from cascade_memory.domain.display import quoted
from cascade_memory.domain.episode import check_source
from cascade_memory.domain.validation import check_seconds
from cascade_memory.errors import InvalidInput, TicketRefused

FROM_OUTSIDE = ("user", "agent")  # the sources whose word comes from outside the application
_OUTSIDE_DOORS = ("mcp",)  # the channels through which everything comes from outside
_A_DAY = 86_400.0
_PURPOSE = "reward"  # what a ticket is signed for
NONE_HERE = "this memory was opened without tickets: open it with tickets=True"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tickets:
    """What reward tickets are needed for, and how long they last.

    Args:
        lifetime: For how long a ticket can be redeemed after its recall (seconds, or a timedelta); by default a day.
        sources: The sources of rewards that need a ticket. A reward over MCP needs one, whatever its source is.

    >>> Tickets(lifetime=timedelta(hours=1)).seconds
    3600.0
    """

    lifetime: float | timedelta = _A_DAY
    sources: Collection[str] = FROM_OUTSIDE

    def __post_init__(self) -> None:
        if isinstance(self.sources, str) or not isinstance(self.sources, Collection):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(
                f"sources must be a collection of sources, such as ('user', 'agent'), not {quoted(self.sources)}"
            )
        for source in self.sources:
            check_source(source)
        if not self.seconds:
            raise InvalidInput("lifetime must be more than 0 seconds")

    @property
    def seconds(self) -> float:
        """How long a ticket lasts."""
        return check_seconds(self.lifetime, "lifetime")

    def needed(self, source: str, channel: str | None) -> bool:
        """Say whether a reward needs a ticket.

        >>> Tickets().needed("user", None), Tickets().needed("host", None), Tickets().needed("host", "mcp")
        (True, False, True)
        """
        return source in self.sources or channel in _OUTSIDE_DOORS


def check_tickets(tickets: object) -> Tickets | None:
    """Return the settings; None if no reward needs a ticket.

    >>> check_tickets(False), check_tickets(True).sources
    (None, ('user', 'agent'))
    """
    if tickets is None or isinstance(tickets, bool):
        return Tickets() if tickets else None
    if not isinstance(tickets, Tickets):
        raise InvalidInput(f"tickets must be True, False or a cascade_memory.Tickets, not {type(tickets).__name__}")
    return tickets


def ticket_of(signing: Signing, episode_id: str, namespace: str, opened_at: float, tickets: Tickets) -> str:
    """Sign a ticket for an episode."""
    return signing.made(_PURPOSE, _about(episode_id, namespace, opened_at), lasts=tickets.seconds)


def admitted(
    signing: Signing,
    ticket: object,
    tickets: Tickets | None,
    *,
    source: str,
    channel: str,
    episode_id: str,
    namespace: str,
    opened_at: Callable[[str], float | None],
) -> Signed | None:
    """Check the ticket of a reward and return it, or None if there is none and none is needed; raise if it is refused.

    ``opened_at`` says when an episode was opened.
    """
    if tickets is None:
        if ticket is not None:
            raise InvalidInput(f"{NONE_HERE}, or pass no ticket")
        return None
    if ticket is None:
        if tickets.needed(source, channel):
            raise TicketRefused(
                f"a reward from {source!r} needs the ticket of its recall here: pass ticket=recall.ticket (over MCP, the "
                "ticket that recall_cases returned)"
            )
        return None
    opened = opened_at(episode_id)
    found = signing.read(_PURPOSE, _about(episode_id, namespace, opened), ticket)
    if found is None:
        raise TicketRefused(
            f"this is not a ticket of episode {episode_id!r}: pass the one that the recall of this episode returned, "
            "unchanged (that of an episode which was forgotten is good for no other one with its id)"
        )
    return found


def _about(episode_id: str, namespace: str, opened_at: float | None) -> list[str]:
    """Return what a ticket is signed for. The opening time is part of it, since a forgotten episode's id may be used again."""
    return [episode_id, namespace, repr(opened_at)]
