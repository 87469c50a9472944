"""``with memory.episode(query) as episode``: recall at the beginning, reward at the end."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from cascade_memory.domain.recall import Recall, RecalledCase
from cascade_memory.domain.trajectory import Solution
from cascade_memory.domain.validation import MetadataValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cascade_memory.memory.episodes import EpisodeVerbs


class Session:
    """One task. Set ``solution`` when there is one, and ``reward(...)`` when the outcome is known.

    What is not rewarded inside the block is asked of the memory's ``reward_fn`` when the block ends; without a verdict it
    stays open with its solution, to be rewarded later by its id. A block that raises is censored unless ``reward_fn`` says
    otherwise; the exception goes on its way.
    """

    def __init__(self, memory: EpisodeVerbs, recall: Recall) -> None:
        self._memory = memory
        self.recall = recall
        self.solution: Solution | None = None
        self._rewarded = False

    @property
    def id(self) -> str:
        """The id under which the reward is reported."""
        return self.recall.episode_id

    @property
    def cases(self) -> tuple[RecalledCase, ...]:
        """The recalled cases."""
        return self.recall.cases

    def render(self) -> str:
        """Return the cases as fenced text."""
        return self.recall.render()

    def reward(
        self,
        value: float | bool,
        *,
        solution: Solution | None = None,
        source: str = "host",
        metadata: Mapping[str, MetadataValue] | None = None,
        confirms: str | None = None,
    ) -> None:
        """Report the outcome; see ``CascadeMemory.reward``."""
        self._memory.reward(
            self.id,
            value,
            solution=self.solution if solution is None else solution,
            source=source,
            metadata=metadata,
            namespace=self.recall.namespace,
            confirms=confirms,
        )
        self._rewarded = True

    def __enter__(self) -> Session:
        """Enter the task."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Settle, censor, or leave open; never swallow the agent's own error, never replace it by one of ours."""
        if self._rewarded or self.recall.error is not None:
            return
        try:
            self._memory.end(self.id, solution=self.solution, status=_status(error), namespace=self.recall.namespace)
        except Exception as failure:
            if error is None:
                raise
            self._memory.note_failure("reward", failure)

    async def __aenter__(self) -> Session:
        """Enter the task, in asynchronous code."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do what the end of a plain block does, without blocking the event loop."""
        if self._rewarded or self.recall.error is not None:
            return
        try:
            await self._memory.aend(self.id, solution=self.solution, status=_status(error), namespace=self.recall.namespace)
        except Exception as failure:
            if error is None:
                raise
            self._memory.note_failure("reward", failure)


def _status(error: BaseException | None) -> str:
    # An interrupt, a cancellation, a generator thrown away: none of them says anything about the case.
    return "ok" if error is None else "error" if isinstance(error, Exception) else "cancelled"
