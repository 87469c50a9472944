"""How episodes end: with a reward, with a verdict, or without either."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from cascade_memory.cycle.retain import why_unkept
from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.episode import TRUSTED_SOURCES, Episode, check_source
from cascade_memory.domain.metadata import MetadataValue
from cascade_memory.domain.records import RecallRecord, Unkept
from cascade_memory.domain.reward_channel import cap_of
from cascade_memory.domain.signed import Signed
from cascade_memory.domain.trajectory import Solution, check_solution
from cascade_memory.domain.trust import ByWhom
from cascade_memory.domain.validation import check_id, check_reward, check_seconds, check_word
from cascade_memory.engine.door import Incoming
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.request import Judgement
from cascade_memory.errors import ContentChanged, UnknownEpisode
from cascade_memory.memory.sources import SourceVerbs
from cascade_memory.memory.threads import in_reward_thread, soon_in_reward_thread
from cascade_memory.memory.ticketing import TicketVerbs
from cascade_memory.memory.verdict import LOOKS_SOLVED, aask, ask, blame, source_of
from cascade_memory.redaction.saying import warn

_FAILED = {"solved": False}  # noted with a failure that is stored because of a low ``retain_at``: no prompt must call it solved


class EpisodeVerbs(SourceVerbs, TicketVerbs):
    """The verbs that concern an episode once it is open."""

    # -- reward ------------------------------------------------------------------------------------------------------

    def reward(
        self,
        episode_id: str,
        value: float | bool,
        *,
        solution: Solution | Sequence[Any] | None = None,
        source: str = "host",
        metadata: Mapping[str, MetadataValue] | None = None,
        overwrite: bool = False,
        confirms: str | None = None,
        ticket: str | None = None,
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
            ticket: The ``ticket`` of the episode's recall, without which a memory with ``tickets=True`` refuses rewards from
                users and agents (``TicketRefused``). It can be redeemed once.
        """
        engine = self._open()
        episode_id = check_id(episode_id, "episode_id")
        number = check_reward(value)
        record, source = engine.parts.door.record(episode_id), check_source(source)
        came = record.take(metadata=metadata) if solution is None else record.take(solution=solution, metadata=metadata)
        confirms = None if confirms is None else check_id(confirms, "confirms")
        engine.recording.wait_for(episode_id)
        if engine.recording.failed_to_open(episode_id):
            return None  # the recall failed open (health() counts that), so there is no episode to reward
        name, by = self._namespace, self._by(record)
        redeemed = self._admitted(ticket, source=source, episode_id=episode_id, namespace=name)
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
        by: ByWhom,
        record: Incoming,
        ticket: Signed | None = None,
        opens: RecallRecord | None = None,
    ) -> str | None:
        """Record a checked judgement; return the id of the case that was stored because of it, if any."""
        unkept = why_unkept(value, source, retain_at=self._retain_at, retain_from=self._retain_from)
        by_hand = action is not None  # a verdict of a person has no cap
        if action is None and source == "human":
            action = NewAction(kind="reward", actor=by.actor)  # by hand: the audit log says so if it replaces an outcome
        elif action is not None and action.corrects:
            unkept = None  # the person says that the solution is right
        metadata = metadata or {}
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
        settled = engine.reward(judgement)
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

    def finish(
        self,
        episode_id: str,
        *,
        solution: Solution | Sequence[Any] | None = None,
        status: str = "ok",
    ) -> bool:
        """Record how a run ended before anybody has judged it: a later ``reward``, from any process, stores this solution.

        The status "interrupted" means that the run waits for somebody and will go on. The record survives a killed process.
        If the episode is not open, this method changes nothing and returns False.
        """
        status = check_word(status, ("ok", "error", "interrupted"), "status")
        episode_id = check_id(episode_id, "episode_id")
        checked = None if solution is None else self._open().parts.door.record(episode_id).solution(solution)
        return self._caught_up(episode_id).parts.ledger.episodes.finish(episode_id, self._namespace_id(), status, checked)

    def latest(self, thread_id: str) -> Episode | None:
        """Return the newest episode of a conversation, or None."""
        thread_id = check_id(thread_id, "thread_id")
        ledger = self._caught_up(thread=thread_id).parts.ledger
        return ledger.episodes.latest(self._namespace_id(), thread_id)

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
        episode = self._ending(episode_id, status, follow_up=follow_up)
        return None if episode is None else self.end_episode(episode, solution=solution, status=status)

    def end_episode(
        self, episode: Episode, *, solution: Solution | Sequence[Any] | None = None, status: str = "ok"
    ) -> float | None:
        """Do what ``end`` does for an episode that was just read and still takes a verdict."""
        checked = None if solution is None else check_solution(solution)
        value = None
        try:
            if self._reward_fn is not None and status != "cancelled":
                value = _checked(ask(self._reward_fn, _as_judged(episode, status, checked)))
        except Exception as error:
            blame(error)
            raise
        finally:
            reward = self._conclude(episode, value, status, checked)
        return reward

    async def aend(
        self,
        episode_id: str,
        *,
        solution: Solution | Sequence[Any] | None = None,
        status: str = "ok",
        follow_up: bool = False,
    ) -> float | None:
        """Do what ``end`` does without blocking the event loop; an async ``reward_fn`` runs in this loop.

        If it is cancelled before there is a verdict, so is the run: its episode is censored.
        """
        checked = None if solution is None else check_solution(solution)
        episode, value = None, None
        try:
            episode = await in_reward_thread(functools.partial(self._ending, episode_id, status, follow_up=follow_up))
            if self._reward_fn is not None and status != "cancelled" and episode is not None:
                value = _checked(await aask(self._reward_fn, _as_judged(episode, status, checked)))
        except Exception as error:
            if episode is not None:
                blame(error)
                await in_reward_thread(functools.partial(self._conclude, episode, None, status, checked))
            raise
        except BaseException as error:
            import asyncio  # slow to load, and loaded by whoever cancels

            abandon = functools.partial(self.abandon, episode_id)
            if isinstance(error, asyncio.CancelledError):
                await in_reward_thread(abandon)
            else:  # a coroutine that is thrown away may wait for nothing
                soon_in_reward_thread(abandon)
            raise
        if episode is None:
            return None
        return await in_reward_thread(functools.partial(self._conclude, episode, value, status, checked))

    def abandon(self, episode_id: str) -> None:
        """Censor an episode if its run may still go on: the run was cancelled, or was never finished."""
        found = self.get_episode(episode_id)
        if found is not None and found.under_way:
            self.discard(episode_id)

    def _ending(self, episode_id: str, status: str, *, follow_up: bool = False) -> Episode | None:
        check_word(status, ("ok", "error", "cancelled"), "status")
        episode = self.get_episode(episode_id)
        if episode is None or episode.status == "open" or episode.has_only_agents_word:
            return episode
        if self._reward_fn is None or not (follow_up and status == "ok" and episode.status == "settled"):
            return None
        return episode if episode.source == source_of(self._reward_fn) else None

    def _conclude(self, episode: Episode, value: float | None, status: str, solution: Solution | None) -> float | None:
        if value is not None and self._reward_fn is not None:
            source = check_source(source_of(self._reward_fn))
            confirms = episode.fingerprint if solution is None else None
            try:
                engine = self._caught_up(episode.id)
                record = engine.parts.door.record(episode.id)
                self._settle(
                    engine,
                    episode_id=episode.id,
                    namespace=episode.namespace,
                    value=value,
                    source=source,
                    solution=None if solution is None else record.solution(solution),
                    overwrite=episode.status == "settled" and not episode.has_only_agents_word,  # a follow-up, see ``end``
                    confirms=confirms,
                    record=record,
                    by=ByWhom(self._actor, episode.channel),
                )
            except ContentChanged as error:  # the agent has reported something else since, and nobody has judged that
                self.note_failure("reward", error)
                return None
            return value
        if episode.status != "open":
            return None  # the agent's own report stays until somebody else judges
        if status == "ok":
            self.finish(episode.id, solution=solution)
        else:
            self.discard(episode.id)
        return None

    def pending(self) -> list[Episode]:
        """Return the episodes that wait for their reward, oldest first."""
        ledger = self._caught_up().parts.ledger
        return ledger.episodes.listed(self._namespace_id(), status="open")

    def reported(self) -> list[Episode]:
        """Return the episodes judged only by the agent itself, oldest first: nothing is learned from them.

        ``reward(episode.id, 1.0, source="human", confirms=episode.fingerprint)`` confirms one: the agent's solution is stored,
        unless the agent has reported a different one since.
        """
        ledger = self._open().parts.ledger
        return ledger.episodes.listed(self._namespace_id(), status="settled", source="agent")

    def get_episode(self, episode_id: str) -> Episode | None:
        """Return an episode of this memory's namespace; None if it has none with this id (``get`` raises an error for a case).

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.get_episode(memory.recall("cool some mug").episode_id).status, memory.get_episode("nobody's")
        ('open', None)
        """
        episode_id = check_id(episode_id, "episode_id")
        found = self._caught_up(episode_id).parts.ledger.episodes.one(episode_id)
        return found if found is not None and found.namespace == self._namespace else None

    def _known(self, episode_id: str) -> Episode:
        """Return an episode of this namespace, or raise."""
        episode_id = check_id(episode_id, "episode_id")
        found = self.get_episode(episode_id)
        if found is None:
            raise UnknownEpisode(f"there is no episode {episode_id!r} in namespace {self._namespace!r}")
        return found

    def knows(self, episode_id: str) -> bool:
        """Say whether an episode id exists in any namespace."""
        engine, episode_id = self._open(), check_id(episode_id, "episode_id")
        return engine.recording.holds(episode_id) or engine.parts.ledger.episodes.one(episode_id) is not None

    def discard(self, episode_id: str) -> bool:
        """Close an open episode without a label: it was cancelled, or nobody will judge it. Return whether it was open."""
        engine = self._open()
        name = self._namespace
        found = self.get_episode(episode_id)
        if found is None:
            raise UnknownEpisode(f"there is no episode {episode_id!r} in namespace {name!r}")
        closed = engine.parts.ledger.episodes.close([found.id], "censored")
        engine.learn_soon()
        return bool(closed)

    def expire(self, older_than: float | timedelta, *, reported: bool = False) -> int:
        """Close the open episodes that began longer ago than this (seconds, or a timedelta); return how many were closed.

        With ``reported=True``, also close those that only their agent has judged, and drop that judgement.
        """
        engine = self._open()
        seconds = check_seconds(older_than)
        ledger = engine.parts.ledger
        old = ledger.episodes.listed(self._namespace_id(), status="open", before=time.time() - seconds)
        if reported:
            waiting = self.reported()
            old += [episode for episode in waiting if episode.opened_at < time.time() - seconds]
        closed = ledger.episodes.close([episode.id for episode in old], "expired", reported=reported)
        engine.learn_soon()
        return len(closed)


def _checked(verdict: float | bool | None) -> float | None:
    return None if verdict is None else check_reward(verdict)


def _as_judged(episode: Episode, status: str, solution: Solution | None) -> Episode:
    # The verdict and the stored case must be about the same solution.
    judged = episode.solution if solution is None else solution
    return dataclasses.replace(episode, status="error" if status == "error" else episode.status, solution=judged)
