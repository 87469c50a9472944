"""What a memory and its nouns (``memory.cases`` and the like) share: the engine, the user's defaults, and who acts where."""

from __future__ import annotations

import dataclasses
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cascade_memory.cycle.retain import why_unkept
from cascade_memory.cycle.reuse import Template, render
from cascade_memory.cycle.select import Exposure
from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.case import Case, task_alone
from cascade_memory.domain.digests import Signed
from cascade_memory.domain.episode import TRUSTED_SOURCES, Episode, check_sources
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.records import Beside, RecallRecord, Unkept
from cascade_memory.domain.tickets import Tickets, check_tickets, ticket_of
from cascade_memory.domain.trajectory import Solution
from cascade_memory.domain.trust import CHANNELS, ByWhom, cap_of, check_caps, check_min_trust
from cascade_memory.domain.validation import check_callable, check_duration, check_id, check_k, check_namespace, check_reward
from cascade_memory.domain.waiting import Flag, patience
from cascade_memory.engine.door import Incoming
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.part import EnginePart
from cascade_memory.engine.recording import failed_recall
from cascade_memory.engine.request import Judgement, RecallRequest
from cascade_memory.errors import (
    EmbedderFailed,
    EpisodeClosed,
    InvalidInput,
    MemoryClosed,
    MemoryForked,
    MissingExtra,
    RedactionFailed,
    UnknownCase,
    UnknownEpisode,
)
from cascade_memory.ledger.filters import plain_filter
from cascade_memory.memory.options import Retention, Trust
from cascade_memory.memory.verdict import LOOKS_SOLVED, RewardFn, check_reward_fn, step_of
from cascade_memory.redaction.marking import redact_secrets
from cascade_memory.redaction.saying import warn

if TYPE_CHECKING:
    from typing_extensions import Self

WITHHELD = "(a task that redact= could not take)"
_FEW = 8  # values of metadata
# Mistakes of the caller. They are raised, while failures of the memory are hidden from the agent.
_MISUSE = (InvalidInput, EpisodeClosed, UnknownEpisode, MemoryClosed, MemoryForked, MissingExtra)
_FAILED = {"solved": False}  # noted with a failure that is stored because of a low ``retain_at``: no prompt must call it solved
# What only adapters call.
_OURS = {
    "abandon",
    "aend_run",
    "as_stored",
    "begin",
    "conclude",
    "counting_again",
    "end_run",
    "note_failure",
    "redeem_code",
    "shares_engine_with",
    "sign_code",
}


class Rewarding(NamedTuple):
    """Lets a recall find the memory that receives its reward. The reference is weak, so it does not keep a memory open."""

    opened: Callable[[], Bound | None]  # a weak reference
    actor: str | None
    channel: str
    namespace: str

    def __call__(self) -> Any:
        """Return the memory, with the actor, channel and namespace of the recall; None if the memory no longer exists."""
        memory: Any = self.opened()
        return None if memory is None else memory.acting(actor=self.actor, channel=self.channel, namespace=self.namespace)


class Bound:
    """Holds an engine (which others may share), the defaults of one user, and the actor, channel and namespace of its calls."""

    def __init__(
        self,
        engine: Engine,
        *,
        k: int,
        namespace: str,
        reward_fn: RewardFn | None,
        exposure: Exposure,
        template: Template | None,
        retention: Retention,
        trust: Trust,
        deadline: float | timedelta | None,
    ) -> None:
        check_reward_fn(reward_fn)
        check_callable(template, "template")
        self._engine = engine
        self._k = check_k(k)
        self._namespace = self._own_namespace = self._engine.parts.door.record().namespace(
            check_namespace(namespace), self._engine.namespace_id
        )
        self._reward_fn = reward_fn
        self._exposure = exposure
        self._template = template or render
        self._retain_at = check_reward(retention.retain_at, "retain_at")
        self._retain_from = check_sources(retention.retain_from)
        self._case_text = retention.case_text or task_alone
        self._deadline = None if deadline is None else check_duration(deadline, "deadline")
        self._actor: str | None = None
        self._channel = CHANNELS[0]
        self._min_trust = check_min_trust(trust.min_trust) or 0
        self._tickets = check_tickets(trust.tickets)
        self._caps = check_caps(trust.reward_caps)
        self._warned: set[str] = set()  # the reasons of the warnings that were already given
        self._closed = Flag()  # the same one in all that acts in this open memory, as is the reference
        self._weakly: Callable[[], Bound | None] = weakref.ref(self)
        self._opened_as: Bound | None = None  # the memory of which this is another way to act; None: of none

    @classmethod
    def _of(cls, other: Bound) -> Self:
        """Return an object of this class that acts like another ``Bound``, with the same engine, defaults and actor."""
        bound = object.__new__(cls)
        vars(bound).update(vars(other))
        bound._opened_as = other._first
        return bound

    def _open(self) -> Engine:
        if self._closed.is_set:
            raise MemoryClosed("this memory is closed; open it again with CascadeMemory(path)")
        self._engine.check()
        return self._engine

    @property
    def _first(self) -> Bound:
        """The memory as the user opened it, which holds the engine open; the objects that ``acting`` returns do not."""
        return self if self._opened_as is None else self._opened_as

    def _caught_up(self, episode_id: str | None = None, *, thread: str | None = None) -> Engine:
        """Wait until pending recalls (of an episode, of a conversation, or all) are on disk, and return the engine."""
        engine = self._open()
        engine.recording.wait_for(episode_id, thread=thread)
        return engine

    def _namespace_id(self) -> int:
        return self._engine.namespace_id(self._namespace)

    def _who(self, record: Incoming | None = None) -> str | None:
        """Return the actor. With a ``record``, raise if the actor's name holds a secret."""
        if record is None or self._actor is None:
            return self._actor
        return record.name(self._actor, "actor")

    def _by(self, record: Incoming | None = None) -> ByWhom:
        return ByWhom(self._who(record), self._channel)

    def _new_in(self, record: Incoming | None = None) -> str:
        """Return the namespace in which something is about to be stored; raise if it is new and its name holds a secret."""
        if self._namespace is self._own_namespace:
            return self._namespace
        record = record or self._engine.parts.door.record()
        return record.namespace(self._namespace, self._engine.namespace_id)

    def _request(
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
        """Check the arguments of a recall or a search in an open memory, and complete them with the memory's defaults."""
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
            expected=self._expected(ending) if (ending := self._engine.ending) else {},
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
            memory=Rewarding(self._weakly, self._actor, self._channel, self._namespace),
        )

    def _expected(self, ending: Sequence[EnginePart]) -> dict[str, MetadataValue]:
        return {name: one for part in ending for name, one in part.expects(self._namespace).items()}

    def _asked(self, query: str, **options: Any) -> Recall:
        """Recall or search, and warn the caller if that fails."""
        return warned(self._found(self._request(query, **options)))

    def _found(self, request: RecallRequest) -> Recall:
        """Return what the engine finds or, if the memory fails, a recall without cases that names the error."""
        beside: list[Beside] = []
        for part, host in () if request.search else self._engine.hosts:
            try:
                current = getattr(module := sys.modules.get(host.module), host.current, None)
                if current is not None and (around := current()) is not getattr(module, host.nothing, None):
                    beside += part.beside(host, around)
            except Exception as error:  # noqa: BLE001 - the recall goes on without
                self._note_failure("trace", error)
        request = dataclasses.replace(request, beside=beside) if beside else request
        listeners = self._engine.listeners
        began = time.time_ns() if listeners else 0
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
        for part in listeners:
            part.heard("recall", began, request, found)
        return found

    def _failed(self, error: Exception, request: RecallRequest) -> Recall:
        self._engine.note_failure("recall", error, warned=True)
        failed = failed_recall(request, self._engine.parts.door.said(error))
        self._engine.recording.note_unopened(failed.episode_id)
        return failed

    def _with_ticket(self, found: Recall, tickets: Tickets, *, named: bool) -> Recall:
        """Return a recall with its ticket. If no ticket can be made, return the recall without one, and count the failure.

        ``named`` says that the caller chose the id of the episode, so an earlier recall may have opened the episode.
        """
        try:
            with patience(self._deadline):
                opened = self._engine.parts.ledger.episodes.opened_at(found.episode_id) if named else None
                ticket = ticket_of(
                    self._engine.signing, found.episode_id, found.namespace, found.at if opened is None else opened, tickets
                )
        except Exception as error:  # noqa: BLE001 - a failing memory must not break the agent
            self._note_failure("ticket", error)
            return found
        return dataclasses.replace(found, ticket=ticket)

    def _settle(
        self,
        engine: Engine,
        *,
        episode_id: str,
        namespace: str,
        value: float,
        source: str,
        solution: Solution | None,
        metadata: Mapping[str, MetadataValue] | None = None,
        overwrite: bool = False,
        confirms: str | None = None,
        action: NewAction | None = None,
        by: ByWhom | None = None,
        channel: str | None = None,
        record: Incoming,
        ticket: Signed | None = None,
        opens: RecallRecord | None = None,
    ) -> str | None:
        """Record a checked judgement; return the id of the case that was stored because of it, if any."""
        by = ByWhom(self._who(record), channel) if by is None else by
        unkept = why_unkept(value, source, retain_at=self._retain_at, retain_from=self._retain_from)
        by_hand = action is not None  # a verdict of a person has no cap
        if action is None and source == "human":
            action = NewAction(kind="reward", actor=by.actor)  # by hand: the audit log says so if it replaces an outcome
        elif action is not None and action.corrects:
            unkept = None  # the person says that the solution is right
        metadata = metadata or {}
        for part in engine.ending:
            metadata = {**part.ends(episode_id), **metadata}
        failed = unkept is None and value < LOOKS_SOLVED and (action is None or not action.corrects)
        judgement = Judgement(
            episode_id=episode_id,
            namespace=namespace,
            value=value,
            source=source,
            solution=solution,
            case_text=self._case_text,
            record=record,
            metadata={**metadata, **_FAILED} if failed else metadata,
            overwrite=overwrite,
            confirms=confirms,
            unkept=unkept,
            waits=source not in TRUSTED_SOURCES and source not in self._retain_from,
            action=action,
            actor=by.actor,
            channel=by.channel,
            ticket=ticket,
            opens=opens,
            cap=None if by.actor is None or by_hand else cap_of(self._caps, source, by.channel),
        )
        listeners = engine.listeners
        began = time.time_ns() if listeners else 0
        settled = engine.reward(judgement)
        for part in listeners:
            part.heard("reward", began, judgement, settled)
        if settled.changed and settled.case_id is None and not settled.capped:
            self._warn_unkept(judgement.unkept or "solution", value)
        return settled.case_id

    def _warn_unkept(self, why: Unkept, value: float) -> None:
        """Warn, once per reason, that an apparent success was not stored. An agent's own report gets no warning."""
        if value <= LOOKS_SOLVED or why == "source" or why in self._warned:
            return
        self._warned.add(why)
        remedy = (
            f"it is below retain_at={self._retain_at:g}; to store such solutions, open the memory with a lower retain_at="
            if why == "below"
            else "it came without a solution; to store what solved the task, pass it as solution="
        )
        warn(
            f"cascade_memory stored no case for a reward of {value:g}: {remedy} (this warning comes once; stats() counts them)",
            UserWarning,
        )

    def _episode(self, episode_id: str) -> Episode | None:
        """Return an episode of this namespace; None if it has none with this id."""
        episode_id = check_id(episode_id, "episode_id")
        found = self._caught_up(episode_id).parts.ledger.episodes.one(episode_id)
        return found if found is not None and found.namespace == self._namespace else None

    def _known(self, episode_id: str) -> Episode:
        """Return an episode of this namespace; raise ``UnknownEpisode``."""
        found = self._episode(episode_id)
        if found is None:
            raise UnknownEpisode(f"there is no episode {episode_id!r} in namespace {self._namespace!r}")
        return found

    def _case(self, case_id: object) -> Case:
        """Return a case of this namespace; raise ``UnknownCase``."""
        found = self._open().parts.ledger.cases.by_id([case_id := check_id(case_id, "case_id")], self._namespace_id())
        if not found:
            raise UnknownCase(f"there is no case {case_id!r} in namespace {self._namespace!r}")
        return found[0]

    def _release(self) -> None:
        self._engine.close()

    def _note_failure(self, step: str, error: Exception) -> None:
        """Count a failure that was hidden from the agent; see ``health()``."""
        self._engine.note_failure(redact_secrets(step_of(error, step)), error)  # health() shows it

    def __dir__(self) -> list[str]:
        """List what is for users: not the private parts, and not what only adapters call."""
        return [name for name in super().__dir__() if name not in _OURS and (name[0] != "_" or name[:2] == "__")]


def stored_at(engine: Engine) -> str:
    """Return where a memory is stored, as text for people."""
    path = engine.parts.ledger.path
    if path is None:
        return engine.parts.place
    try:
        return str(path.parent.relative_to(Path.cwd()))
    except (ValueError, OSError):  # the folder is not below the working directory, or that was deleted
        return str(path.parent)


def warned(found: Recall) -> Recall:
    """Warn if a recall failed or was not stored. Runs on the caller's thread, so that the warning names the caller's line."""
    if found.error is not None:
        made = found.cases or found.abstained
        failed, going_on = ("store a recall", "") if made else ("recall", "; going on without cases")
        warn(f"cascade_memory could not {failed} ({found.error}){going_on}", RuntimeWarning)
    return found
