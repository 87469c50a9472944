"""``with memory.episode(query) as episode``, for adapters: recalls of the framework in the block join the episode."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from cascade_memory.memory.session import Session
from cascade_memory.runs.around import ActiveEpisode, within

if TYPE_CHECKING:
    from typing_extensions import Self

    from cascade_memory.memory.memory import Memory
    from cascade_memory.memory.session import MakesRecall


class JoinedSession(Session):
    """The ``with`` block of one task; see ``cascade_memory.CascadeMemory.episode``. Set ``solution`` before the block ends."""

    def __init__(self, memory: Memory, makes: MakesRecall) -> None:
        super().__init__(memory, makes)
        self._of = memory
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Make the episode the active one, until the block ends."""
        around = ActiveEpisode(memory=self._of, episode_id=self.id, namespace=self.recall.namespace, session=self)
        self._stack.enter_context(within(around))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Settle or censor the episode, or leave it open; see ``Session.__exit__``."""
        self._stack.close()
        super().__exit__(kind, error, traceback)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do what the end of a synchronous block does, without blocking the event loop."""
        self._stack.close()
        await super().__aexit__(kind, error, traceback)
