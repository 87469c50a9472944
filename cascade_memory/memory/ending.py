"""Ends the run of an episode: ``reward_fn`` judges it, or the episode waits for a reward, or it is closed without a label."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from cascade_memory.domain.episode import Episode, check_source
from cascade_memory.domain.trajectory import Solution, check_solution
from cascade_memory.domain.validation import check_id, check_reward, check_word
from cascade_memory.errors import ContentChanged
from cascade_memory.memory.bound import Bound
from cascade_memory.memory.threads import in_reward_thread, soon_in_reward_thread
from cascade_memory.memory.verdict import aask, ask, blame, source_of


class Ending(Bound):
    """Methods that find an episode by its id, and that end it."""

    def get(self, episode_id: str) -> Episode | None:
        """Return an episode of this memory's namespace; None if it has none with this id.

        >>> from cascade_memory import CascadeMemory
        >>> memory = CascadeMemory(embedder="hashing")
        >>> memory.episodes.get(memory.recall("cool some mug").episode_id).status, memory.episodes.get("nobody's")
        ('open', None)
        """
        return self._episode(episode_id)

    def end_run(self, episode_id: str, solution: Solution | Sequence[Any] | None, status: str, follow_up: bool) -> float | None:
        """Implement ``memory.end``."""
        episode = self._ending(episode_id, status, follow_up=follow_up)
        return None if episode is None else self.conclude(episode, solution=solution, status=status)

    def conclude(
        self, episode: Episode, *, solution: Solution | Sequence[Any] | None = None, status: str = "ok"
    ) -> float | None:
        """Do what ``memory.end`` does, for an episode that was just read and can still be judged; return the reward or None."""
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

    async def aend_run(
        self, episode_id: str, solution: Solution | Sequence[Any] | None, status: str, follow_up: bool
    ) -> float | None:
        """Implement ``memory.aend``."""
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
        """Censor an episode whose run was cancelled or left unfinished; do nothing unless it is still ``under_way``."""
        found = self._episode(episode_id)
        if found is not None and found.under_way:
            self.discard(episode_id)

    def discard(self, episode_id: str) -> bool:
        """Close an open episode without a label: it was cancelled, or nobody will judge it. Return whether it was open."""
        engine = self._open()
        found = self._known(episode_id)
        closed = engine.parts.ledger.episodes.close([found.id], "censored")
        engine.learn_soon()
        return bool(closed)

    def finish(self, episode_id: str, *, solution: Solution | Sequence[Any] | None = None, status: str = "ok") -> bool:
        """Record the solution and the status of a run that nobody has judged yet; return whether they were recorded.

        A later ``reward``, from any process, then stores this solution. The status "interrupted" means that the run waits for
        somebody and will go on. The record survives a killed process. If the episode is not open, this method changes nothing
        and returns False.
        """
        status = check_word(status, ("ok", "error", "interrupted"), "status")
        episode_id = check_id(episode_id, "episode_id")
        checked = None if solution is None else self._open().parts.door.record(episode_id).solution(solution)
        engine = self._caught_up(episode_id)
        ending = engine.ending if status != "interrupted" else ()
        more = {name: one for part in ending for name, one in part.ends(episode_id).items()}
        return engine.parts.ledger.episodes.finish(episode_id, self._namespace_id(), status, checked, more)

    def _ending(self, episode_id: str, status: str, *, follow_up: bool = False) -> Episode | None:
        check_word(status, ("ok", "error", "cancelled"), "status")
        episode = self._episode(episode_id)
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
                    channel=episode.channel,
                )
            except ContentChanged as error:  # the agent has reported something else since, and nobody has judged that
                self._note_failure("reward", error)
                return None
            return value
        if episode.status != "open":
            return None  # the agent's own report stays until somebody else judges
        if status == "ok":
            self.finish(episode.id, solution=solution)
        else:
            self.discard(episode.id)
        return None


def _checked(verdict: float | bool | None) -> float | None:
    return None if verdict is None else check_reward(verdict)


def _as_judged(episode: Episode, status: str, solution: Solution | None) -> Episode:
    # The verdict and the stored case must be about the same solution.
    judged = episode.solution if solution is None else solution
    return dataclasses.replace(episode, status="error" if status == "error" else episode.status, solution=judged)
