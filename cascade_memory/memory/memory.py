"""The class with the methods for agents. The methods for people are those of its nouns, such as ``memory.cases``."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from cascade_memory.capabilities import CAPABILITIES, Noun
from cascade_memory.domain.actions import check_actor
from cascade_memory.domain.case import Case
from cascade_memory.domain.display import counted, shorten
from cascade_memory.domain.episode import check_source
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.provenance import Wanted
from cascade_memory.domain.recall import Recall, RecalledCase
from cascade_memory.domain.tickets import admitted
from cascade_memory.domain.trajectory import Solution, Step
from cascade_memory.domain.trust import check_channel
from cascade_memory.domain.validation import Moment, check_id, check_namespace, check_reward
from cascade_memory.engine.door import Incoming
from cascade_memory.engine.part import episode_of
from cascade_memory.errors import CascadeError, InvalidInput
from cascade_memory.memory.bound import Bound, stored_at, warned
from cascade_memory.memory.ending import Ending
from cascade_memory.memory.explaining import explained, message_for
from cascade_memory.memory.threads import in_reward_thread, in_thread, warmed
from cascade_memory.visible import visible

if TYPE_CHECKING:
    from typing_extensions import Self

    from cascade_memory.capabilities import Nouns
    from cascade_memory.insight.report import Report
    from cascade_memory.insight.stats import Health, Receipt, Stats
    from cascade_memory.memory.cases import Cases
    from cascade_memory.memory.data import Data
    from cascade_memory.memory.episodes import Episodes
    from cascade_memory.memory.session import Session

else:
    Nouns = object  # see the end of this file

# Nouns, and what else a recall does without, are imported at their first use: most of a process's first recall are imports.
_NOUNS = ("cases", "episodes", *CAPABILITIES, "data")


@explained
class Memory(Bound, Nouns):
    """A case memory that learns from outcomes. Use ``cascade_memory.CascadeMemory``, which assembles one."""

    @property
    def k(self) -> int:
        """The greatest number of cases that a recall returns by default."""
        return self._k

    @property
    def namespace(self) -> str:
        """The namespace in which this memory acts."""
        return self._namespace

    def acting(self, *, actor: str | None = None, channel: str | None = None, namespace: str | None = None) -> Self:
        """Return the same memory with another actor, channel or namespace; what is left out stays as it is.

        The returned memory is open as long as this one is. Closing one of them closes both.

        Args:
            actor: Who asks, rewards, adds and decides: stored with every recall, outcome and case, and in the audit log. Take
                it from your login or your framework, never from a text.
            channel: The door through which the calls come: "python", "langchain", "llama_index", "mcp", "cli", "inspector".
            namespace: The name that says whose cases and episodes these are. Namespaces share neither.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> kitchen = memory.acting(actor="ann", namespace="kitchen")
        >>> case_id = kitchen.recall("cool some mug").reward(1.0, solution="put it into the fridge")
        >>> kitchen.cases.get(case_id).actor, len(kitchen), len(memory)
        ('ann', 1, 0)
        """
        bound = type(self)._of(self)
        if actor is not None:
            bound._actor = check_actor(actor)
        if channel is not None:
            bound._channel = check_channel(channel)
        if namespace is not None:
            bound._namespace = check_namespace(namespace)
        return bound

    # -- recall ----------------------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        *,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        episode_id: str | None = None,
        thread_id: str | None = None,
        metadata: Mapping[str, MetadataValue] | None = None,
        min_trust: str | None = None,
    ) -> Recall:
        """Return the cases that are expected to help with a task, and open an episode for the task.

        Args:
            query: The task, as text.
            k: The greatest number of cases; by default the memory's own ``k``.
            where: A metadata filter that the cases must match, with Chroma's operators.
            episode_id: The id of an open episode to recall for again, or your own id for a new one (a run id, for example).
                An id is good for one episode in the whole memory, so take none that a stranger chooses.
            thread_id: The conversation that a new episode belongs to; see ``episodes.latest``.
            metadata: Stored with the episode and with the case that results from it (a user's id, for example), so that
                ``forget(where=...)`` can find both.
            min_trust: The least trusted source whose cases are recalled: "judge" leaves out cases that only a user or an agent
                has verified.

        Returns:
            A ``Recall``: ``.cases`` (none, if none is expected to help), ``.render()``, ``.explain()``, ``.episode_id``, and
            ``.ticket`` in a memory with ``Trust(tickets=True)``.
            If the memory itself fails or misses its deadline, the recall has no cases and ``.error`` is set: a failing
            memory does not stop the agent. If only writing fails, the recall has its cases, and ``.error`` is set.
        """
        return self._asked(
            query, k=k, where=where, episode_id=episode_id, thread_id=thread_id, metadata=metadata, min_trust=min_trust
        )

    async def arecall(
        self,
        query: str,
        *,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        episode_id: str | None = None,
        thread_id: str | None = None,
        metadata: Mapping[str, MetadataValue] | None = None,
        min_trust: str | None = None,
    ) -> Recall:
        """Do what ``recall`` does without blocking the event loop."""
        about: dict[str, Any] = {"k": k, "where": where, "metadata": metadata, "min_trust": min_trust}
        about |= {"episode_id": episode_id, "thread_id": thread_id}
        return warned(await in_thread(lambda: self._found(self._request(query, **about))))

    def episode(
        self,
        query: str,
        *,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        metadata: Mapping[str, MetadataValue] | None = None,
        min_trust: str | None = None,
    ) -> Session:
        """Recall for a task and reward it at the end of a ``with`` or ``async with`` block; see ``Session``."""
        from cascade_memory.memory.session import Session

        return Session(self, self.episodes.begin(query, k=k, where=where, metadata=metadata, min_trust=min_trust))

    # -- reward ----------------------------------------------------------------------------------------------------------

    def reward(
        self,
        episode_id: str | None = None,
        value: float | bool | None = None,
        *,
        solution: Solution | Sequence[Any] | None = None,
        source: str = "host",
        metadata: Mapping[str, MetadataValue] | None = None,
        overwrite: bool = False,
        confirms: str | None = None,
        ticket: str | None = None,
        trace_id: str | None = None,
        span_id: str | None = None,
    ) -> str | None:
        """Report how an episode ended: at any time, in any order, from any process. It is on disk when this method returns.

        A success (``value >= retain_at``) with a ``solution`` becomes a case, and its id is returned. Reporting the same value
        again changes nothing. A different value needs ``overwrite=True``, which takes back the case and what was learned from
        it.

        Args:
            episode_id: As returned by ``recall``.
            value: Between 0 and 1; booleans count as 0 and 1.
            solution: What solved the task: text, a ``Trajectory``, or its steps. By default the solution that ``finish``
                recorded. An agent's own solution becomes a case only if ``confirms`` says that somebody has seen it.
            source: Who judged: "host", "human", "env", "judge", "user" (an end user's thumb) or "agent". An agent's own
                report is stored but, by default, it is neither learned from nor retained.
            metadata: Stored with the case, in addition to the recall's metadata; ``where=`` filters by it.
            overwrite: Replace an outcome that was reported before.
            confirms: The ``fingerprint`` of the episode as you saw it; raises ``ContentChanged`` if its content has changed
                since.
            ticket: The ``ticket`` of the episode's recall. A memory with ``Trust(tickets=True)`` refuses rewards from users and
                agents without it (``TicketRefused``). It can be redeemed once.
            trace_id: In place of ``episode_id``: the id of the OpenTelemetry, Langfuse or LangSmith trace around the recall.
            span_id: If the trace has several episodes: the span or run that the recall was made in.
        """
        engine = self._open()
        if trace_id is not None or span_id is not None:
            episode_id = episode_of(self._caught_up().capable, self._namespace_id(), episode_id, trace_id, span_id)
        episode_id = check_id(episode_id, "episode_id")
        number = check_reward(value)
        record, source = engine.parts.door.record(episode_id), check_source(source)
        came = record.take(metadata=metadata) if solution is None else record.take(solution=solution, metadata=metadata)
        confirms = None if confirms is None else check_id(confirms, "confirms")
        engine.recording.wait_for(episode_id)
        if engine.recording.failed_to_open(episode_id):
            return None  # the recall failed open (health() counts that), so there is no episode to reward
        name, by = self._namespace, self._by(record)
        redeemed = admitted(
            engine.signing,
            ticket,
            self._tickets,
            source=source,
            channel=self._channel,
            episode_id=episode_id,
            namespace=name,
            opened_at=engine.parts.ledger.episodes.opened_at,
        )
        return self._settle(
            engine,
            episode_id=episode_id,
            namespace=name,
            value=number,
            source=source,
            solution=came.solution,
            metadata=came.metadata,
            overwrite=overwrite,
            confirms=confirms,
            by=by,
            record=record,
            ticket=redeemed,
        )

    async def areward(
        self,
        episode_id: str | None = None,
        value: float | bool | None = None,
        *,
        solution: Solution | Sequence[Step] | None = None,
        source: str = "host",
        metadata: Mapping[str, MetadataValue] | None = None,
        overwrite: bool = False,
        confirms: str | None = None,
        ticket: str | None = None,
        trace_id: str | None = None,
        span_id: str | None = None,
    ) -> str | None:
        """Do what ``reward`` does without blocking the event loop."""
        return await in_reward_thread(
            functools.partial(
                self.reward,
                episode_id,
                value,
                solution=solution,
                source=source,
                metadata=metadata,
                overwrite=overwrite,
                confirms=confirms,
                ticket=ticket,
                trace_id=trace_id,
                span_id=span_id,
            )
        )

    def end(
        self,
        episode_id: str,
        *,
        solution: Solution | Sequence[Any] | None = None,
        status: str = "ok",
        follow_up: bool = False,
    ) -> float | None:
        """Say that a run is over, and let ``reward_fn`` judge it; return the reward, or None if there is no verdict yet.

        ``status`` is "ok", "error" (``reward_fn`` is asked, and may still judge) or "cancelled" (nobody is asked). Without a
        verdict, a run that ended with "ok" stays pending and keeps its solution for a later ``reward``; any other run is
        censored. An episode that is no longer open (because of a replay or an earlier verdict) is left unchanged, unless the
        run was a ``follow_up`` to the same task: ``reward_fn`` then judges the longer solution, and replaces its own verdict.
        """
        return Ending._of(self).end_run(episode_id, solution, status, follow_up)

    async def aend(
        self,
        episode_id: str,
        *,
        solution: Solution | Sequence[Any] | None = None,
        status: str = "ok",
        follow_up: bool = False,
    ) -> float | None:
        """Do what ``end`` does without blocking the event loop; an async ``reward_fn`` runs in this loop.

        If this call is cancelled before there is a verdict, the run counts as cancelled: its episode is censored.
        """
        return await Ending._of(self).aend_run(episode_id, solution, status, follow_up)

    # -- cases -----------------------------------------------------------------------------------------------------------

    @overload
    def add(
        self,
        query: str,
        solution: Solution | Sequence[Step],
        *,
        metadata: Mapping[str, MetadataValue] | None = None,
        source: str = "human",
    ) -> str: ...

    @overload
    def add(
        self,
        query: Iterable[tuple[Any, ...] | Mapping[str, Any]],
        *,
        source: str = "human",
        progress: bool | None = None,
    ) -> list[str]: ...

    def add(
        self,
        query: str | Iterable[tuple[Any, ...] | Mapping[str, Any]],
        solution: Solution | Sequence[Step] | None = None,
        *,
        metadata: Mapping[str, MetadataValue] | None = None,
        source: str = "human",
        progress: bool | None = None,
    ) -> str | list[str]:
        """Store known-good cases: one (``add(query, solution)``) or many (``add([(query, solution), ...])``).

        Many cases may be pairs, triples with metadata, or mappings with ``query``, ``solution`` and ``metadata``. All are
        checked before any is stored. A pair that exists already is counted, not stored twice. Who adds them (see ``acting``) is
        stored with the cases, and in the audit log, which has an entry if the source is a human. What you add for a user or an
        agent needs ``source="user"`` or "agent": the default has the highest trust, and no record or quarantine of its actor
        holds it back.
        """
        from cascade_memory.memory import curation

        engine, name, source = self._open(), self._new_in(), check_source(source)
        by, door = self._by(), engine.parts.door

        def admit(record: Incoming) -> None:
            if record.knows_any:
                record.name(by.actor, "actor")
                self._new_in(record)

        if isinstance(query, str):
            record = door.record()
            one = curation.checked((query, solution, metadata), self._case_text, record)
            admit(record)
            return curation.add(engine, [one], namespace=name, source=source, progress=False, by=by)[0]
        if solution is not None or metadata is not None:
            about = "add(query, solution) takes a query as text, and add(cases) takes solutions and metadata inside the cases"
            raise InvalidInput(f"{about}; the first argument is a {type(query).__name__}")
        try:
            given = iter(query)
        except TypeError:
            one_or_many = "a query and its solution, or an iterable of cases"
            raise InvalidInput(f"add takes {one_or_many}, not a {type(query).__name__}") from None
        cases = curation.checked_all(given, self._case_text, door, admit)
        return curation.add(engine, cases, namespace=name, source=source, progress=progress, by=by)

    def forget(
        self,
        case_ids: str | Iterable[str] | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        episode_id: str | None = None,
        by_actor: str | None = None,
        by_channel: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        everything: bool = False,
        purge: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Delete cases by id, data by its metadata, an episode, what a source wrote, or ``everything`` of a namespace.

        The memory then learns again from what remains, and its counts no longer include what was deleted. Returns what was
        deleted.

        Args:
            case_ids: One case or several, with every episode that led to one of them, since it has the same text.
            where: A metadata filter, with Chroma's operators: everything that was recalled, rewarded or added with such
                metadata. A case stays, without that metadata, while another source confirms the same solution of the task.
            episode_id: An episode, and the case that it led to, unless another source confirms that case.
            by_actor: Undo this source: its episodes, the outcomes that it reported, what it added, and the cases that nobody
                else confirms. The most valuable cases that were evicted since the source's first one come back. "": what has no
                actor.
            by_channel: Undo what came through this channel. With ``by_actor``, ``since`` or ``until`` as well, only
                what fits all of them is undone.
            since: Undo what came from this moment on (as for ``diff``).
            until: Undo what came before this moment.
            everything: All cases and episodes of the namespace.
            purge: Return only when no file of the memory holds a byte of the deleted data: rewrites the ledger, the
                snapshots and Chroma, which takes seconds per 100,000 cases.
            dry_run: Return the same receipt, and change nothing. Forgetting cannot be undone.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> ann, mallory = memory.acting(actor="ann"), memory.acting(actor="mallory")
        >>> ids = [ann.add("cool some mug", "fridge"), mallory.add("cool some cup", "oven")]
        >>> ann.forget(by_actor="mallory").cases
        1
        >>> [case.solution for case in memory.cases.all()]
        ['fridge']
        """
        from cascade_memory.memory import curation

        name, wanted = self._namespace, Wanted.of(by_actor, by_channel, since, until)
        began, engine = time.time_ns(), self._open()
        receipt = curation.forget(
            engine,
            case_ids,
            where=where,
            episode_id=episode_id,
            everything=everything,
            purge=purge,
            dry_run=dry_run,
            namespace=name,
            by=self._who(),
            source=curation.OfSource(wanted, lambda: self.review.counting_again(wanted, name)) if wanted else None,
        )
        for part in () if dry_run else engine.listeners:
            part.heard("forget", began, (name, case_ids), receipt)
        return receipt

    def __len__(self) -> int:
        """Return the number of cases in the memory's own namespace."""
        return self._open().parts.ledger.cases.count(self._namespace_id())

    def __bool__(self) -> bool:
        """Return True: an empty memory is a memory as well, and ``if memory:`` asks whether there is one."""
        return True

    def __contains__(self, case: object) -> bool:
        """Say whether the memory's own namespace holds a case, which is given by its id or as it was returned."""
        case_id = case.id if isinstance(case, (Case, RecalledCase)) else check_id(case, "case_id")
        return bool(self._open().parts.ledger.cases.by_id([case_id], self._namespace_id()))

    # -- nouns -----------------------------------------------------------------------------------------------------------

    @property
    def cases(self) -> Cases:
        """The stored cases: to list, search, pin and hide."""
        from cascade_memory.memory.cases import Cases

        return Cases._of(self)

    @property
    def episodes(self) -> Episodes:
        """The tasks that were asked: how they went, and what was shown for them."""
        from cascade_memory.memory.episodes import Episodes

        return Episodes._of(self)

    @property
    def data(self) -> Data:
        """The folder or the database as a whole: export, import, backup, upkeep."""
        from cascade_memory.memory.data import Data

        return Data._of(self)

    # -- looking ---------------------------------------------------------------------------------------------------------

    def stats(self, *, everywhere: bool = False) -> Stats:
        """Count the cases, episodes and so on of the memory's namespace, or with ``everywhere`` of all namespaces."""
        from cascade_memory.memory.self_report import stats_of

        own = self._namespace == self._own_namespace
        return stats_of(self._open(), self._namespace, everywhere=everywhere, own=own)

    def health(self) -> Health:
        """Report failures that did not raise an exception, and how far Chroma is behind."""
        from cascade_memory.memory.self_report import health_of

        return health_of(self._open())

    def report(self, *, everywhere: bool = False) -> Report:
        """Measure the memory's worth on its own episodes, and say what it has learned.

        The report has the lift, calibration, coverage, what teaches the ranker, and what the shadow would have achieved. Its
        ``costs`` add up what the recalls of this process cost. Its ``alarms`` name actors whom a person should check.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.reward(memory.recall("cool some mug").episode_id, 0.0)
        >>> memory.report()
        Report(1 episode, lift unknown)
        """
        from cascade_memory.memory.self_report import report_on

        return report_on(self._open(), self._namespace, everywhere=everywhere)

    # -- opening and closing ---------------------------------------------------------------------------------------------

    def warm(self, *, wait: bool = True) -> None:
        """Load the embedder and the namespace's cases now, instead of at the first recall.

        With ``wait=False`` this method returns at once, and a thread loads both if the embedder has a model to load. The MCP
        server and the middleware call it by themselves.
        """
        warmed(self._open(), self._new_in(), wait=wait)

    def sync(self) -> None:
        """Wait until everything acknowledged has been learned and Chroma holds every case."""
        self._open().sync()

    def close(self) -> None:
        """Sync and release the folder. Using the memory afterwards is an error; closing it again is not."""
        if not self._closed.is_set:
            self._first._release()  # if it is interrupted, closing again goes on with it
            self._closed.set()

    if not TYPE_CHECKING:  # type checkers would take every name for one that exists

        def __getattr__(self, name: str) -> Any:
            """Raise ``AttributeError``, and say what to pass if a framework wants this name, or which noun has it now."""
            nouns = () if name.startswith("_") else (noun for noun in _NOUNS if hasattr(type(getattr(self, noun)), name))
            at = next((f": memory.{noun}.{name} is it" for noun in nouns), "")
            raise AttributeError(message_for(type(self), name) + at)

    def __enter__(self) -> Self:
        """Use the memory in a ``with`` block that closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the memory."""
        self.close()

    def __repr__(self) -> str:
        """Describe the memory in one line."""
        if self._closed.is_set:
            return "CascadeMemory(closed)"
        try:
            cases = int(self._engine.parts.ledger.insight.counts(self._namespace_id())["cases"])
        except (CascadeError, OSError):
            return f"CascadeMemory({stored_at(self._engine)}, unreadable)"
        return visible(f"CascadeMemory({stored_at(self._engine)}, {counted(cases, 'case')}, namespace={self._namespace!r})")

    def _repr_html_(self) -> str:
        from cascade_memory.looks.card import Card, Facts, Notes

        if self._closed.is_set:
            return Card("CascadeMemory", "closed").html()
        health = self.health()
        notes = [f"{name}: {shorten(value, 100)}" for name, value in health.rows()[:2]]
        return Card(
            "CascadeMemory",
            stored_at(self._engine),
            [Facts(self.stats().rows()), Notes(notes)],
            state="" if health.ok else "bad",
        ).html()


for _capability in CAPABILITIES:
    setattr(Memory, _capability, Noun(_capability))
