"""The class with the public methods of a memory."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, overload

from cascade_memory.domain.episode import check_source
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.trajectory import Solution, Step
from cascade_memory.engine.door import Incoming
from cascade_memory.engine.request import RecallRequest
from cascade_memory.engine.undecided import failed_recall
from cascade_memory.errors import (
    EmbedderFailed,
    EpisodeClosed,
    InvalidInput,
    MemoryClosed,
    MemoryForked,
    MissingExtra,
    UnknownEpisode,
)
from cascade_memory.memory import curation, transfer
from cascade_memory.memory.backup import backup
from cascade_memory.memory.explaining import explained
from cascade_memory.memory.forgetting import ForgettingVerbs
from cascade_memory.memory.session import MakesRecall, Session
from cascade_memory.memory.threads import in_reward_thread, in_thread
from cascade_memory.memory.warning import WarningVerbs
from cascade_memory.redaction.saying import warn

# Mistakes of the caller. They are raised, while failures of the memory are hidden from the agent.
_MISUSE = (InvalidInput, EpisodeClosed, UnknownEpisode, MemoryClosed, MemoryForked, MissingExtra)


@explained
class Memory(ForgettingVerbs, WarningVerbs):
    """A case memory that learns from outcomes. Use ``cascade_memory.CascadeMemory``, which assembles one."""

    # -- recall ------------------------------------------------------------------------------------------------------

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
            thread_id: The conversation that a new episode belongs to; see ``latest``.
            metadata: Stored with the episode and with the case that results from it (a user's id, for example), so that
                ``forget(where=...)`` can find both.
            min_trust: The least source whose cases are recalled: "judge" leaves out what only a user or an agent has verified.

        Returns:
            A ``Recall``: ``.cases`` (none, if none is expected to help), ``.render()``, ``.explain()``, ``.episode_id``, and
            ``.ticket`` in a memory with ``tickets=True``.
            If the memory itself fails or misses its deadline, the recall has no cases and ``.error`` is set: a failing
            memory does not stop the agent. If only writing fails, the recall has its cases, and ``.error`` is set.
        """
        request = self._request(
            query, k=k, where=where, episode_id=episode_id, thread_id=thread_id, metadata=metadata, min_trust=min_trust
        )
        return _warned(self._found(request))

    def search(
        self,
        query: str,
        *,
        k: int | None = None,
        where: Mapping[str, Any] | None = None,
        min_trust: str | None = None,
    ) -> Recall:
        """Return the most similar cases, without the learned ranking. It opens no episode; the log calls it a search."""
        return _warned(self._found(self._request(query, k=k, where=where, search=True, min_trust=min_trust)))

    def _found(self, request: RecallRequest) -> Recall:
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
        return Session(self, self.will_recall(query, k=k, where=where, metadata=metadata, min_trust=min_trust))

    def will_recall(self, query: str, **options: Any) -> MakesRecall:
        """Return how a block recalls when it begins, with these options of ``recall``; they are checked now."""
        request = self._request(query, **options)

        async def awaited() -> Recall:
            return _warned(await in_thread(lambda: self._found(request)))

        return MakesRecall(lambda: _warned(self._found(request)), awaited)

    # -- async twins -------------------------------------------------------------------------------------------------

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
        return _warned(await in_thread(lambda: self._found(self._request(query, **about))))

    async def areward(
        self,
        episode_id: str,
        value: float | bool,
        *,
        solution: Solution | Sequence[Step] | None = None,
        source: str = "host",
        metadata: Mapping[str, MetadataValue] | None = None,
        overwrite: bool = False,
        confirms: str | None = None,
        ticket: str | None = None,
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
            )
        )

    # -- cases -------------------------------------------------------------------------------------------------------

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

    def propose(
        self,
        query: str,
        solution: Solution | Sequence[Step],
        *,
        metadata: Mapping[str, MetadataValue] | None = None,
    ) -> str:
        """Record a task that an agent solved without a recall; it becomes a case once somebody confirms it.

        Returns the id of its episode, which ``reported()`` lists. A namespace holds 1,000 such episodes, or 32 MiB of text.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> episode_id = memory.propose("cool some mug", "put it into the fridge")
        >>> (seen,) = memory.reported()
        >>> case_id = memory.reward(seen.id, 1.0, source="human", confirms=seen.fingerprint)
        >>> memory.get(case_id).solution
        'put it into the fridge'
        """
        engine = self._open()
        record = engine.parts.door.record()
        came = record.take(query=query, solution=solution, metadata=metadata)
        name, by, checked = self._new_in(record), self._by(record), came.solved

        def write(number: int) -> str:
            opens = curation.proposal(engine, number, came.query, checked, metadata=came.metadata, by=by)
            record.keep_for(str(opens.episode_id))
            self._settle(
                engine,
                episode_id=(episode_id := str(opens.episode_id)),
                namespace=name,
                value=1.0,
                source="agent",
                solution=checked,
                by=by,
                record=record,
                opens=opens,
            )
            return episode_id

        return curation.in_namespace(engine, name, write)

    # -- moving ------------------------------------------------------------------------------------------------------

    def export(self, target: str | Path | IO[str], *, progress: bool | None = None) -> int:
        """Write everything as JSON lines (to a path or an open file); return the number of lines."""
        return transfer.export(self._open(), target, progress=progress)

    def backup(self, target: str | os.PathLike[str]) -> dict[str, int]:
        """Copy the memory as it is now into a new folder, while its users go on; return counts of what the copy holds.

        The copy is checked before it gets its name. It is a complete memory: open it, or put it back with ``restore``.
        """
        return backup(self._open(), target)

    def import_(self, source: str | Path | Iterable[str], *, progress: bool | None = None) -> int:
        """Read what ``export`` wrote and add what does not exist yet; return the number of records added."""
        engine = self._open()
        added = transfer.import_(engine, source, progress=progress, actor=self._who())
        engine.learn_soon()
        return added


def _warned(found: Recall) -> Recall:
    """Warn if a recall failed, or was not written down; called where the caller waits, so that the warning names that line."""
    if found.error is not None:
        made = found.cases or found.abstained
        failed, going_on = ("store a recall", "") if made else ("recall", "; going on without cases")
        warn(f"cascade_memory could not {failed} ({found.error}){going_on}", RuntimeWarning)
    return found
