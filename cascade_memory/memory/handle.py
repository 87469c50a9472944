"""A handle on an engine: it has the user's defaults, the statistics and the health, and it can be closed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cascade_memory.cycle.reuse import Template, render
from cascade_memory.domain.actions import check_actor
from cascade_memory.domain.case_text import CaseText, task_alone
from cascade_memory.domain.display import counted, shorten
from cascade_memory.domain.episode import check_sources
from cascade_memory.domain.exposure import Exposure
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.reward_channel import check_caps
from cascade_memory.domain.tickets import Tickets, check_tickets
from cascade_memory.domain.trust import CHANNELS, ByWhom, check_channel, check_min_trust
from cascade_memory.domain.validation import check_callable, check_duration, check_id, check_k, check_namespace, check_reward
from cascade_memory.engine.door import Incoming
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.request import RecallRequest
from cascade_memory.errors import CascadeError, MemoryClosed, RedactionFailed
from cascade_memory.insight.plot import Plot, plot_rewards
from cascade_memory.insight.report import Report
from cascade_memory.insight.stats import Health, Stats
from cascade_memory.ledger.filter_limits import plain_filter
from cascade_memory.looks.card import Card, Facts, Notes
from cascade_memory.memory.doctor import Check, examine, mend
from cascade_memory.memory.self_report import health_of, report_on, stats_of
from cascade_memory.memory.verdict import RewardFn, check_reward_fn, step_of
from cascade_memory.memory.warming import warmed
from cascade_memory.redaction.marking import redact_secrets
from cascade_memory.visible import visible

if TYPE_CHECKING:
    from typing_extensions import Self

_OURS = {"abandon", "as_stored", "end_episode", "note_failure", "redeem_code", "shares_engine_with", "sign_code", "will_recall"}
WITHHELD = "(a task that redact= could not take)"
_FEW = 8  # values of metadata


class Rewarding(NamedTuple):
    """How a recall finds the memory that takes its reward. It keeps no memory open that nobody else holds."""

    opened: Callable[[], Handle | None]  # a weak reference
    actor: str | None
    channel: str
    namespace: str

    def __call__(self) -> Any:
        """Return the memory, acting as it did when it recalled; None if it is gone."""
        memory = self.opened()
        return None if memory is None else memory.acting(actor=self.actor, channel=self.channel, namespace=self.namespace)


class Handle:
    """Holds the defaults of one user, and an engine that it may share with other handles."""

    def __init__(
        self,
        engine: Engine,
        *,
        k: int,
        namespace: str,
        reward_fn: RewardFn | None,
        exposure: Exposure,
        template: Template | None,
        retain_at: float,
        retain_from: Collection[str],
        case_text: CaseText | None,
        deadline: float | timedelta | None,
        actor: str | None = None,
        min_trust: str | None = None,
        tickets: bool | Tickets = False,
        reward_caps: Mapping[str, int | None] | None = None,
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
        self._retain_at = check_reward(retain_at, "retain_at")
        self._retain_from = check_sources(retain_from)
        check_callable(case_text, "case_text")
        self._case_text = case_text or task_alone
        self._deadline = None if deadline is None else check_duration(deadline, "deadline")
        self._actor = self._own_actor = check_actor(actor)
        self._channel = CHANNELS[0]
        self._min_trust = check_min_trust(min_trust) or 0
        self._tickets = check_tickets(tickets)
        self._caps = check_caps(reward_caps)
        self._warned: set[str] = set()  # the reasons of the warnings that were already given
        self._opened_as: Self | None = None  # the memory of which this is another way to act; None: of none
        self._closed = False

    @property
    def k(self) -> int:
        """The greatest number of cases that a recall returns by default."""
        return self._k

    @property
    def namespace(self) -> str:
        """The namespace in which this memory acts."""
        return self._namespace

    def acting(self, *, actor: str | None = None, channel: str | None = None, namespace: str | None = None) -> Self:
        """Return the same memory, acting for somebody, through a door, or in another namespace; what is left out stays.

        It is open as long as this memory is, and to close one is to close both.

        Args:
            actor: Who asks, rewards, adds and decides: stored with every recall, outcome and case, and in the audit log. Take
                it from your login or your framework, never from a text.
            channel: The door through which it comes: "python", "langchain", "llama_index", "mcp", "cli", "inspector".
            namespace: Whose cases and episodes they are. Namespaces share none.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> kitchen = memory.acting(actor="ann", namespace="kitchen")
        >>> case_id = kitchen.recall("cool some mug").reward(1.0, solution="put it into the fridge")
        >>> kitchen.get(case_id).actor, len(kitchen), len(memory)
        ('ann', 1, 0)
        """
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._opened_as = self._opened_as or self
        if actor is not None:
            bound._actor = check_actor(actor)
        if channel is not None:
            bound._channel = check_channel(channel)
        if namespace is not None:
            bound._namespace = check_namespace(namespace)
        return bound

    def shares_engine_with(self, other: Handle) -> bool:
        """Say whether both are handles on the same open folder."""
        return self._engine is other._engine

    def as_stored(self, query: str, episode_id: str | None = None) -> str:
        """Return a task as a recall of this memory has it, for an episode: with placeholders instead of secrets."""
        return self._open().parts.door.record(episode_id).query(query)

    def warm(self, *, wait: bool = True) -> None:
        """Load the embedder and the namespace's cases now, instead of at the first recall; without ``wait``, on a thread.

        A server and the middleware do the latter by themselves, if the embedder has a model to load.
        """
        warmed(self._open(), self._new_in(), wait=wait)

    # -- looking -----------------------------------------------------------------------------------------------------

    def stats(self, *, everywhere: bool = False) -> Stats:
        """Count the cases, episodes and so on of a namespace (by default the memory's own), or of all with ``everywhere``."""
        own = self._namespace == self._own_namespace
        return stats_of(self._open(), self._namespace, everywhere=everywhere, own=own)

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces of the folder."""
        return list(self._open().parts.ledger.namespaces())

    def health(self) -> Health:
        """Report failures that did not raise an exception, and how far Chroma is behind."""
        return health_of(self._open())

    def examine(self, *, fix: bool = False) -> list[Check]:
        """Compare ledger, index and Chroma; return the findings. With ``fix``, repair what can be repaired."""
        return mend(self._open()) if fix else examine(self._open())

    def rebuild(self) -> None:
        """Build the Chroma folder again from the ledger."""
        feeder = self._open().feeder
        if feeder is not None:
            feeder.rebuild()

    def stand_aside(self) -> None:
        """Leave feeding Chroma to other processes: for one that only looks, while agents come and go."""
        feeder = self._open().feeder
        if feeder is not None:
            feeder.stand_aside()

    def rewards(self) -> list[tuple[float, bool]]:
        """Return (value, whether a case was shown) for every rewarded episode, in order."""
        ledger = self._open().parts.ledger
        return ledger.insight.rewards(self._namespace_id())

    def report(self, *, everywhere: bool = False) -> Report:
        """Measure the memory's worth on its own stream, and say what it has learned.

        That is: lift, calibration, coverage, what teaches the ranker, and what the shadow would have achieved. Its ``costs``
        add up what the recalls of this process cost, and its ``alarms`` name actors at whom a person should look.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.reward(memory.recall("cool some mug").episode_id, 0.0)
        >>> memory.report()
        Report(1 episode, lift unknown)
        """
        return report_on(self._open(), self._namespace, everywhere=everywhere)

    def plot(self, *, window: int = 50) -> Plot:
        """Plot success and regret over the episodes; a notebook shows the picture. Each mean is of ``window`` episodes.

        ``plot().savefig("success.png")`` writes it into a file, and ``plot().figure`` is the matplotlib figure of it: both
        need the extra "plot".
        """
        return plot_rewards(self.rewards(), window=check_k(window, "window"))

    def note_failure(self, step: str, error: Exception) -> None:
        """Count a failure that was hidden from the agent; see ``health()``."""
        self._engine.note_failure(redact_secrets(step_of(error, step)), error)  # health() shows it

    # -- ending ------------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Wait until everything acknowledged has been learned and Chroma holds every case."""
        self._open().sync()

    def refit(self) -> None:
        """Learn everything again from the outcomes in the ledger; a trained encoder starts from its pretrained weights.

        After ``forget``, this is needed to make a cross-encoder forget as well. Training takes time: ``sync`` waits for it.
        """
        self._open().refit(self._new_in())

    def close(self) -> None:
        """Sync and release the folder. Using the memory afterwards is an error; closing it again is not."""
        opened = self._opened_as or self
        if not opened._closed:
            opened._release()  # if it is interrupted, closing again goes on with it
            opened._closed = True

    def _release(self) -> None:
        self._engine.close()

    def __enter__(self) -> Self:
        """Use the memory in a ``with`` block that closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _open(self) -> Engine:
        if self._is_closed:
            raise MemoryClosed("this memory is closed; open it again with CascadeMemory(path)")
        self._engine.check()
        return self._engine

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

    @property
    def _is_closed(self) -> bool:
        return (self._opened_as or self)._closed

    def _caught_up(self, episode_id: str | None = None, *, thread: str | None = None) -> Engine:
        """Return the engine when pending recalls are on disk: those of an episode, of a conversation, or all of them."""
        engine = self._open()
        engine.recording.wait_for(episode_id, thread=thread)
        return engine

    def _namespace_id(self) -> int:
        return self._engine.namespace_id(self._namespace)

    def _who(self, record: Incoming | None = None) -> str | None:
        """Return who does something. A name that was given later than the memory's own must not hold a secret."""
        if record is None or self._actor is self._own_actor:
            return self._actor
        return record.name(self._actor, "actor")

    def _by(self, record: Incoming | None = None) -> ByWhom:
        return ByWhom(self._who(record), self._channel)

    def _new_in(self, record: Incoming | None = None) -> str:
        """Return the namespace of something that is about to be stored; the name of a new one must not hold a secret."""
        if self._namespace is self._own_namespace:
            return self._namespace
        record = record or self._engine.parts.door.record()
        return record.namespace(self._namespace, self._engine.namespace_id)

    @property
    def place(self) -> str:
        """Where the memory is stored, as text for people."""
        path = self._engine.parts.ledger.path
        if path is None:
            return self._engine.parts.place
        try:
            return str(path.parent.relative_to(Path.cwd()))
        except (ValueError, OSError):  # the folder is not below the working directory, or that was deleted
            return str(path.parent)

    def __dir__(self) -> list[str]:
        """List what is for users: not the private parts, and not what only adapters call."""
        return [name for name in super().__dir__() if name not in _OURS and (name[0] != "_" or name[:2] == "__")]

    def __repr__(self) -> str:
        """Describe the memory in one line."""
        if self._is_closed:
            return "CascadeMemory(closed)"
        try:
            cases = int(self._engine.parts.ledger.insight.counts(self._namespace_id())["cases"])
        except (CascadeError, OSError):
            return f"CascadeMemory({self.place}, unreadable)"
        return visible(f"CascadeMemory({self.place}, {counted(cases, 'case')}, namespace={self._namespace!r})")

    def _repr_html_(self) -> str:
        if self._is_closed:
            return Card("CascadeMemory", "closed").html()
        health = self.health()
        notes = [f"{name}: {shorten(value, 100)}" for name, value in health.rows()[:2]]
        return Card(
            "CascadeMemory", self.place, [Facts(self.stats().rows()), Notes(notes)], state="" if health.ok else "bad"
        ).html()
