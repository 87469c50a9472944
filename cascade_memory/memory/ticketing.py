"""Reward tickets: a recall hands one out, and a reward from outside has to bring it back."""

from __future__ import annotations

from cascade_memory.domain.signed import Signed
from cascade_memory.domain.tickets import PURPOSE, Tickets
from cascade_memory.engine.engine import Engine
from cascade_memory.errors import InvalidInput, TicketRefused

NONE_HERE = "this memory was opened without tickets: open it with tickets=True"


def ticket_of(engine: Engine, episode_id: str, namespace: str, opened_at: float, tickets: Tickets) -> str:
    """Sign a ticket for an episode."""
    return engine.signing.made(PURPOSE, _about(episode_id, namespace, opened_at), lasts=tickets.seconds)


def admitted(
    engine: Engine, ticket: object, tickets: Tickets | None, *, source: str, channel: str, episode_id: str, namespace: str
) -> Signed | None:
    """Check the ticket of a reward and return it, or None if there is none and none is needed; raise if it is refused."""
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
    opened = engine.parts.ledger.episodes.opened_at(episode_id)
    found = engine.signing.read(PURPOSE, _about(episode_id, namespace, opened), ticket)
    if found is None:
        raise TicketRefused(
            f"this is not a ticket of episode {episode_id!r}: pass the one that the recall of this episode returned, "
            "unchanged (that of an episode which was forgotten is good for no other one with its id)"
        )
    return found


def _about(episode_id: str, namespace: str, opened_at: float | None) -> list[str]:
    """Return what a ticket is signed for. The opening time is part of it, since a forgotten episode's id may be used again."""
    return [episode_id, namespace, repr(opened_at)]
