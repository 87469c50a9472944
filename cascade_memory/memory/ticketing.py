"""Reward tickets: a recall hands one out, and a reward from outside has to bring it back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from cascade_memory.domain.patience import patience
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.signed import Signed
from cascade_memory.domain.tickets import PURPOSE, Tickets
from cascade_memory.domain.validation import check_id
from cascade_memory.errors import InvalidInput, TicketRefused, UnknownEpisode
from cascade_memory.memory.browsing import Browsing

_NONE_HERE = "this memory was opened without tickets: open it with tickets=True"


class TicketVerbs(Browsing):
    """The verbs that make signed tokens and take them back."""

    def needs_ticket(self, source: str) -> bool:
        """Say whether a reward from a source has to bring the ticket of its recall.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing", tickets=True)
        >>> memory.needs_ticket("user"), memory.needs_ticket("host"), memory.acting(channel="mcp").needs_ticket("host")
        (True, False, True)
        """
        return self._tickets is not None and self._tickets.needed(source, self._channel)

    def ticket_of(self, episode_id: str) -> str:
        """Make a ticket for an episode: for the answer of an agent whose framework has made the recall.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing", tickets=True)
        >>> episode_id = memory.recall("cool some mug").episode_id
        >>> memory.reward(episode_id, 0.0, source="user", ticket=memory.ticket_of(episode_id))
        """
        episode_id = check_id(episode_id, "episode_id")
        found = self._caught_up(episode_id).parts.ledger.episodes.one(episode_id)
        if found is None or found.namespace != self._namespace:
            raise UnknownEpisode(f"there is no episode {episode_id!r} in namespace {self._namespace!r}")
        if self._tickets is None:
            raise InvalidInput(_NONE_HERE)
        return self._ticket(found.id, found.namespace, found.opened_at, self._tickets)

    def _ticket(self, episode_id: str, namespace: str, opened_at: float, tickets: Tickets) -> str:
        return self._engine.signing.made(PURPOSE, _about(episode_id, namespace, opened_at), lasts=tickets.seconds)

    def _with_ticket(self, found: Recall, tickets: Tickets, *, named: bool) -> Recall:
        """Return a recall with its ticket. If none can be made, the recall goes on without, and the failure is counted.

        ``named``: the caller has named the episode, so another recall may have opened it.
        """
        try:
            with patience(self._deadline):
                opened = self._engine.parts.ledger.episodes.opened_at(found.episode_id) if named else None
                ticket = self._ticket(found.episode_id, found.namespace, found.at if opened is None else opened, tickets)
        except Exception as error:  # noqa: BLE001 - a failing memory must not break the agent
            self.note_failure("ticket", error)
            return found
        return dataclasses.replace(found, ticket=ticket)

    def _admitted(self, ticket: object, *, source: str, episode_id: str, namespace: str) -> Signed | None:
        """Return the ticket that a reward redeems, None if it needs none; raise if it may not come in."""
        if self._tickets is None:
            if ticket is not None:
                raise InvalidInput(f"{_NONE_HERE}, or pass no ticket")
            return None
        if ticket is None:
            if self._tickets.needed(source, self._channel):
                raise TicketRefused(
                    f"a reward from {source!r} needs the ticket of its recall here: pass ticket=recall.ticket (over MCP, the "
                    "ticket that recall_cases returned)"
                )
            return None
        opened = self._engine.parts.ledger.episodes.opened_at(episode_id)
        found = self._engine.signing.read(PURPOSE, _about(episode_id, namespace, opened), ticket)
        if found is None:
            raise TicketRefused(
                f"this is not a ticket of episode {episode_id!r}: pass the one that the recall of this episode returned, "
                "unchanged (that of an episode which was forgotten is good for no other one with its id)"
            )
        return found

    # -- confirmation codes ------------------------------------------------------------------------------------------

    def sign_code(self, purpose: str, about: Sequence[str], *, lasts: float) -> str:
        """Make a code with which somebody confirms something later, in this process or another; for adapters."""
        return self._open().signing.made(purpose, about, lasts=lasts)

    def redeem_code(self, purpose: str, about: Sequence[str], code: object) -> None:
        """Take a code, once; raise ``TicketRefused`` if it is not good for exactly this."""
        engine = self._open()
        found = engine.signing.read(purpose, about, code)
        if found is None or not engine.parts.ledger.facts.redeem(found, "", named="this code"):
            raise TicketRefused("this code is not good for that, or was used before")


def _about(episode_id: str, namespace: str, opened_at: float | None) -> list[str]:
    """Return what a ticket is signed for. An id may come again once its episode was forgotten; its first moment does not."""
    return [episode_id, namespace, repr(opened_at)]
