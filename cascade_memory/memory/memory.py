"""The verbs: what a user does with a memory."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, overload

from cascade_memory.cycle.retain import is_worth_retaining
from cascade_memory.domain.case import Case
from cascade_memory.domain.episode import Episode, check_source
from cascade_memory.domain.recall import Recall
from cascade_memory.domain.trajectory import Solution, Step, check_solution
from cascade_memory.domain.validation import (
    MetadataValue,
    check_id,
    check_k,
    check_metadata,
    check_query,
    check_reward,
    check_seconds,
)
from cascade_memory.errors import (
    EpisodeClosed,
    InvalidInput,
    MemoryClosed,
    MemoryForked,
    MissingExtra,
    UnknownCase,
    UnknownEpisode,
)
from cascade_memory.memory import curation, transfer
from cascade_memory.memory.handle import Handle
from cascade_memory.memory.session import Session
from cascade_memory.memory.view import failed_recall, recall_view
from cascade_memory.memory.views import Receipt

RewardFn = Callable[[Episode], "float | bool | None"]
_MISUSE = (InvalidInput, EpisodeClosed, UnknownEpisode, MemoryClosed, MemoryForked, MissingExtra)  # the caller's, not ours


class Memory(Handle):
    """A case memory that learns from outcomes. Use ``cascade_memory.CascadeMemory``, which assembles one."""

    # -- recall ------------------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        *,
        k: int | None = None,
        namespace: str | None = None,
        where: Mapping[str, Any] | None = None,
        episode_id: str | None = None,
    ) -> Recall:
        """Return the cases that are expected to help with a task, and open an episode for it.

        Args:
            query: The task, as text.
            k: How many cases at most; the memory's own number by default.
            namespace: Whose cases; the memory's own namespace by default.
            where: Metadata that a case must have, with Chroma's operators.
            episode_id: Recall once more within an open episode, or open one under your own id (a run id, say).

        Returns:
            A ``Recall``: ``.cases`` (none, if none is expected to help), ``.render()``, ``.explain()``, ``.episode_id``.
            If the memory itself fails, no cases and ``.error``: a failing memory does not stop the agent.
        """
        return self._recall(query, k=k, namespace=namespace, where=where, episode_id=episode_id, search=False)

    def search(
        self,
        query: str,
        *,
        k: int | None = None,
        namespace: str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Recall:
        """Return the most similar cases, whatever was learned. Opens no episode, takes no reward, is logged as a search."""
        return self._recall(query, k=k, namespace=namespace, where=where, episode_id=None, search=True)

    def _recall(
        self,
        query: str,
        *,
        k: int | None,
        namespace: str | None,
        where: Mapping[str, Any] | None,
        episode_id: str | None,
        search: bool,
    ) -> Recall:
        engine = self._open()
        query = check_query(query)
        k = self._k if k is None else check_k(k)
        namespace = self._in(namespace)
        episode_id = None if episode_id is None else check_id(episode_id, "episode_id")
        try:
            chosen = engine.recall(
                query,
                namespace=namespace,
                k=k,
                where=where,
                episode_id=episode_id,
                abstain=self._abstain,
                search=search,
            )
            return recall_view(engine, chosen, query=query, namespace=namespace, template=self._template)
        except _MISUSE:
            raise
        except Exception as error:  # noqa: BLE001 - a failing memory must not break the agent
            engine.note_failure("recall", error)
            message = f"{type(error).__name__}: {error}"
            warnings.warn(f"cascade_memory could not recall ({message}); going on without cases", RuntimeWarning, stacklevel=3)
            return failed_recall(query, namespace, episode_id, message, self._template)

    def episode(
        self, query: str, *, k: int | None = None, namespace: str | None = None, where: Mapping[str, Any] | None = None
    ) -> Session:
        """Recall for a task and reward it at the end of a ``with`` block; see ``Session``."""
        return Session(self, self.recall(query, k=k, namespace=namespace, where=where))

    # -- reward ------------------------------------------------------------------------------------------------------

    def reward(
        self,
        episode_id: str,
        value: float | bool,
        *,
        solution: Solution | Sequence[Any] | None = None,
        source: str = "host",
        metadata: Mapping[str, MetadataValue] | None = None,
        namespace: str | None = None,
        overwrite: bool = False,
    ) -> str | None:
        """Report how an episode ended; late, out of order, or from another process is fine. Durable when this returns.

        A success (``value >= retain_at``) with a ``solution`` becomes a case, and its id is returned. The same value again
        changes nothing; another one needs ``overwrite=True``, which takes back the case and what was learned from it.

        Args:
            episode_id: As returned by ``recall``.
            value: Between 0 and 1; booleans count as 0 and 1.
            solution: What solved the task: text, a ``Trajectory``, or its steps.
            source: Who judged: "host", "human", "env", "judge" or "agent". An agent's own report is kept but, by default,
                neither learned from nor retained.
            metadata: Kept with the case; what ``where=`` filters by.
            namespace: Refuse an episode of another namespace than this one; the memory's own by default.
            overwrite: Replace an outcome that was reported before.
        """
        engine = self._open()
        episode_id = check_id(episode_id, "episode_id")
        number = check_reward(value)
        checked = None if solution is None else check_solution(solution)
        source = check_source(source)
        fields = check_metadata(metadata)
        settled = engine.reward(
            episode_id,
            number,
            namespace=self._in(namespace),
            source=source,
            solution=checked,
            retain=is_worth_retaining(number, source, checked, retain_at=self._retain_at, retain_from=self._retain_from),
            metadata=fields,
            overwrite=overwrite,
        )
        return settled.case_id

    def ask_reward_fn(self, episode_id: str, *, status: str, solution: Solution | None) -> float | bool | None:
        """Return what ``reward_fn`` says about an episode; None when there is no such function, or it cannot tell yet."""
        if self._reward_fn is None:
            return None
        episode = self.get_episode(episode_id)
        if episode is None:
            return None
        return self._reward_fn(dataclasses.replace(episode, status=status, solution=solution))

    def pending(self, *, namespace: str | None = None) -> list[Episode]:
        """Return the episodes that wait for their reward, oldest first."""
        ledger = self._open().parts.ledger
        return ledger.episodes(ledger.namespace(self._in(namespace), create=False) or 0, status="open")

    def get_episode(self, episode_id: str) -> Episode | None:
        """Return an episode of this memory's namespace, or None."""
        found = self._open().parts.ledger.episode(check_id(episode_id, "episode_id"))
        return found if found is not None and found.namespace == self._namespace else None

    def discard(self, episode_id: str) -> bool:
        """Close an open episode without a label: it was cancelled, or nobody will ever know. Return whether it was open."""
        engine = self._open()
        found = engine.parts.ledger.episode(check_id(episode_id, "episode_id"))
        if found is None:
            raise UnknownEpisode(f"there is no episode {episode_id!r}")
        closed = engine.parts.ledger.close_episodes([found.id], "censored")
        engine.learn_soon()
        return bool(closed)

    def expire(self, older_than: float | timedelta, *, namespace: str | None = None) -> int:
        """Close the open episodes that began longer ago than this (seconds, or a timedelta); return how many."""
        engine = self._open()
        seconds = check_seconds(older_than)
        ledger = engine.parts.ledger
        number = ledger.namespace(self._in(namespace), create=False) or 0
        old = ledger.episodes(number, status="open", before=time.time() - seconds)
        closed = ledger.close_episodes([episode.id for episode in old], "expired")
        engine.learn_soon()
        return len(closed)

    # -- async twins -------------------------------------------------------------------------------------------------

    async def arecall(self, query: str, **options: Any) -> Recall:
        """Do what ``recall`` does without blocking the event loop."""
        return await _in_thread(functools.partial(self.recall, query, **options))

    async def areward(self, episode_id: str, value: float | bool, **options: Any) -> str | None:
        """Do what ``reward`` does without blocking the event loop."""
        return await _in_thread(functools.partial(self.reward, episode_id, value, **options))

    # -- cases -------------------------------------------------------------------------------------------------------

    @overload
    def add(
        self,
        query: str,
        solution: Solution | Sequence[Step],
        *,
        metadata: Mapping[str, MetadataValue] | None = None,
        namespace: str | None = None,
        source: str = "human",
    ) -> str: ...

    @overload
    def add(
        self,
        query: Iterable[tuple[Any, ...] | Mapping[str, Any]],
        *,
        namespace: str | None = None,
        source: str = "human",
        progress: bool | None = None,
    ) -> list[str]: ...

    def add(
        self,
        query: str | Iterable[tuple[Any, ...] | Mapping[str, Any]],
        solution: Solution | Sequence[Step] | None = None,
        *,
        metadata: Mapping[str, MetadataValue] | None = None,
        namespace: str | None = None,
        source: str = "human",
        progress: bool | None = None,
    ) -> str | list[str]:
        """Store known-good cases: one (``add(query, solution)``) or many (``add([(query, solution), ...])``).

        Many may be pairs, triples with metadata, or mappings with ``query``, ``solution`` and ``metadata``. All are checked
        before any is stored. A pair that is stored already is counted, not stored twice.
        """
        engine, name, source = self._open(), self._in(namespace), check_source(source)
        if isinstance(query, str):
            one = (query, solution, metadata)
            return curation.add(engine, [one], namespace=name, source=source, progress=False)[0]
        if solution is not None or metadata is not None:
            raise InvalidInput("add(cases) takes solutions and metadata inside the cases")
        cases = [curation.unpacked(case) for case in query]
        return curation.add(engine, cases, namespace=name, source=source, progress=progress)

    def get(self, case_id: str, *, namespace: str | None = None) -> Case:
        """Return a stored case."""
        ledger, name = self._open().parts.ledger, self._in(namespace)
        found = ledger.cases_by_id([check_id(case_id, "case_id")], ledger.namespace(name, create=False) or 0)
        if not found:
            raise UnknownCase(f"there is no case {case_id!r} in namespace {name!r}")
        return found[0]

    def forget(
        self,
        case_ids: str | Iterable[str] | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        episode_id: str | None = None,
        namespace: str | None = None,
        everything: bool = False,
    ) -> Receipt:
        """Delete cases (by id or metadata), an episode, or ``everything`` of a namespace; return what went.

        A case takes the episode that made it along: its text says the same. What was learned is then learned afresh from
        what remains.
        """
        return curation.forget(
            self._open(),
            case_ids,
            where=where,
            episode_id=episode_id,
            everything=everything,
            namespace=self._in(namespace),
        )

    # -- moving ------------------------------------------------------------------------------------------------------

    def export(self, target: str | Path | IO[str], *, progress: bool | None = None) -> int:
        """Write everything as JSON lines (to a path or an open file); return the number of lines."""
        return transfer.export(self._open(), target, progress=progress)

    def import_(self, source: str | Path | Iterable[str], *, progress: bool | None = None) -> int:
        """Read what ``export`` wrote, adding what is not there yet; return the number of lines taken."""
        engine = self._open()
        taken = transfer.import_(engine, source, progress=progress)
        engine.learn_soon()
        return taken


async def _in_thread(call: Callable[[], Any]) -> Any:
    # The default executor of whichever loop is running: nothing of asyncio is kept, so any loop will do.
    return await asyncio.get_running_loop().run_in_executor(None, call)
