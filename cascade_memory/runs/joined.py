"""``with memory.episode(query) as episode``, for adapters: recalls that the framework makes inside the block join it."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from cascade_memory.memory.session import Session
from cascade_memory.runs.around import ActiveEpisode, within

if TYPE_CHECKING:
    from cascade_memory.domain.recall import Recall
    from cascade_memory.memory.memory import Memory


class JoinedSession(Session):
    """One task; see ``cascade_memory.CascadeMemory.episode``. Set ``solution`` before the block ends."""

    def __init__(self, memory: Memory, recall: Recall, *, channel: str | None = None) -> None:
        super().__init__(memory, recall, channel=channel)
        self._around = ActiveEpisode(memory=memory, episode_id=recall.episode_id, namespace=recall.namespace, session=self)
        self._stack = ExitStack()

    def __enter__(self) -> JoinedSession:
        """Begin the task."""
        self._stack.enter_context(within(self._around))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Settle or censor the episode, or leave it open."""
        self._stack.close()
        super().__exit__(kind, error, traceback)

    async def __aenter__(self) -> JoinedSession:
        """Begin the task, in asynchronous code."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do what the end of a synchronous block does, without blocking the event loop."""
        self._stack.close()
        await super().__aexit__(kind, error, traceback)
