"""How a recall or a search is made: what was asked is checked, and a failing memory never breaks the agent."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.patience import patience
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.tickets import Tickets
from cascade_memory.domain.trust import check_min_trust
from cascade_memory.domain.validation import check_id, check_k
from cascade_memory.engine.request import RecallRequest
from cascade_memory.engine.undecided import failed_recall
from cascade_memory.errors import (
    EmbedderFailed,
    EpisodeClosed,
    InvalidInput,
    MemoryClosed,
    MemoryForked,
    MissingExtra,
    RedactionFailed,
    UnknownEpisode,
)
from cascade_memory.ledger.filter_limits import plain_filter
from cascade_memory.memory.bound import Bound
from cascade_memory.memory.session import MakesRecall
from cascade_memory.memory.threads import in_thread
from cascade_memory.memory.ticketing import ticket_of
from cascade_memory.redaction.saying import warn

WITHHELD = "(a task that redact= could not take)"
_FEW = 8  # values of metadata
# Mistakes of the caller. They are raised, while failures of the memory are hidden from the agent.
_MISUSE = (InvalidInput, EpisodeClosed, UnknownEpisode, MemoryClosed, MemoryForked, MissingExtra)


class Rewarding(NamedTuple):
    """How a recall finds the memory that takes its reward. It keeps no memory open that nobody else holds."""

    opened: Callable[[], Bound | None]  # a weak reference
    actor: str | None
    channel: str
    namespace: str

    def __call__(self) -> Any:
        """Return the memory, acting as it did when it recalled; None if it is gone."""
        memory: Any = self.opened()
        return None if memory is None else memory.acting(actor=self.actor, channel=self.channel, namespace=self.namespace)


class Recalling(Bound):
    """Makes recalls and searches."""

    def request(
        self,
        query: object,
        *,
        k: object = None,
        where: object = None,
        episode_id: object = None,
        thread_id: object = None,
        metadata: object = None,
        search: bool = False,
        min_trust: object = None,
    ) -> RecallRequest:
        """Check what the user asks for in an open memory; the defaults of this handle fill the rest."""
        record, unclean = self._open().parts.door.record(episode_id), None
        try:
            if where is not None:
                record.listen(where := plain_filter(where))  # checked first: it may be any object
            came = record.take(query=query, metadata=metadata)
            query, fields = came.query, came.metadata
        except RedactionFailed as error:
            query, fields, unclean = WITHHELD, dict[str, MetadataValue](), error
        return RecallRequest(
            query=query,
            k=self._k if k is None else check_k(k),
            namespace=self._new_in(record),
            where=where,
            episode_id=None if episode_id is None else record.name(check_id(episode_id, "episode_id"), "episode_id"),
            thread_id=None if thread_id is None else record.name(check_id(thread_id, "thread_id"), "thread_id"),
            metadata=fields,
            unclean=unclean,
            exposure=self._exposure,
            template=self._template,
            deadline=self._deadline,
            search=search,
            record=record,
            actor=self._who(record),
            channel=self._channel,
            min_trust=self._min_trust if min_trust is None else check_min_trust(min_trust) or 0,
            light=where is None and len(fields) <= _FEW and not any(isinstance(value, list) for value in fields.values()),
            memory=Rewarding(weakref.ref(self._opened_as or self), self._actor, self._channel, self._namespace),
        )

    def found(self, request: RecallRequest) -> Recall:
        """Return what the engine finds, or a recall without cases that names the error."""
        try:
            found = self._engine.recall(request) if request.unclean is None else self._failed(request.unclean, request)
        except _MISUSE as error:
            if not isinstance(error, EmbedderFailed):
                raise
            found = self._failed(error, request)
        except Exception as error:  # noqa: BLE001 - a failing memory must not break the agent
            found = self._failed(error, request)
        if not request.search:
            request.record.keep_for(found.episode_id)
        if found.error is None and self._tickets is not None and not request.search:
            found = self._with_ticket(found, self._tickets, named=request.episode_id is not None)
        return found

    def _failed(self, error: Exception, request: RecallRequest) -> Recall:
        self._engine.note_failure("recall", error, warned=True)
        failed = failed_recall(request, self._engine.parts.door.said(error))
        self._engine.recording.note_unopened(failed.episode_id)
        return failed

    def _with_ticket(self, found: Recall, tickets: Tickets, *, named: bool) -> Recall:
        """Return a recall with its ticket. If none can be made, the recall goes on without, and the failure is counted.

        ``named``: the caller has named the episode, so another recall may have opened it.
        """
        try:
            with patience(self._deadline):
                opened = self._engine.parts.ledger.episodes.opened_at(found.episode_id) if named else None
                ticket = ticket_of(
                    self._engine, found.episode_id, found.namespace, found.at if opened is None else opened, tickets
                )
        except Exception as error:  # noqa: BLE001 - a failing memory must not break the agent
            self._note_failure("ticket", error)
            return found
        return dataclasses.replace(found, ticket=ticket)

    def beginning(self, query: str, **options: Any) -> MakesRecall:
        """Return how a block recalls when it begins, with these options of ``recall``; they are checked now."""
        request = self.request(query, **options)

        async def awaited() -> Recall:
            return warned(await in_thread(lambda: self.found(request)))

        return MakesRecall(lambda: warned(self.found(request)), awaited)


def warned(found: Recall) -> Recall:
    """Warn if a recall failed, or was not written down; called where the caller waits, so that the warning names that line."""
    if found.error is not None:
        made = found.cases or found.abstained
        failed, going_on = ("store a recall", "") if made else ("recall", "; going on without cases")
        warn(f"cascade_memory could not {failed} ({found.error}){going_on}", RuntimeWarning)
    return found
