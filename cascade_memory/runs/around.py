"""The active episode: the one that the running code belongs to, because an adapter or the user's own block opened it.

Inside ``with memory.episode(query) as episode``, for adapters, recalls of the framework join the episode.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cascade_memory.domain.waiting import Asker, asked_by
from cascade_memory.errors import EpisodeClosed, UnknownEpisode
from cascade_memory.memory.session import Session
from cascade_memory.runs.ending import status_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from cascade_memory.domain.recall import Recall
    from cascade_memory.memory.memory import Memory
    from cascade_memory.memory.session import MakesRecall


@dataclass(slots=True, eq=False, kw_only=True)
class ActiveEpisode:
    """An episode, and the number of recalls made within it."""

    memory: Memory
    episode_id: str
    namespace: str | None
    session: Session | None = None  # a ``with memory.episode(...)`` block, which ends the episode itself
    recalls: int = 0
    asked: dict[Any, Any] = field(default_factory=dict[Any, Any])  # recalls that were made, so that none is made twice
    asking: threading.Lock = field(default_factory=threading.Lock)
    outer: ActiveEpisode | None = None
    asker: Asker = field(default_factory=lambda: Asker(ends_named=True))  # leaves when the code that it surrounds is over

    def join(self, memory: Memory, query: str, **options: Any) -> Recall:
        """Recall within this episode, and count the recall."""
        self.recalls += 1
        with asked_by(self.asker):
            return join(memory.acting(namespace=self.namespace), self.episode_id, query, **options)


def join(memory: Memory, episode_id: str | None, query: str, **options: Any) -> Recall:
    """Recall within an episode; open a new episode if that one has ended or belongs to another namespace."""
    try:
        return memory.recall(query, episode_id=episode_id, **options)
    except (EpisodeClosed, UnknownEpisode):
        return memory.recall(query, **options)


_current: ContextVar[ActiveEpisode | None] = ContextVar("cascade_memory_current", default=None)


def active_episode(memory: Memory) -> ActiveEpisode | None:
    """Return the innermost episode of this memory that surrounds the running code; None if there is none."""
    found = _current.get()
    while found is not None and not found.memory.data.shares_engine_with(memory):
        found = found.outer
    return found


@contextlib.contextmanager
def within(entry: ActiveEpisode) -> Generator[ActiveEpisode, None, None]:
    """Make an episode the active one for the code inside the block. A recall that outlives the block opens no episode."""
    entry.outer = _current.get()
    token = _current.set(entry)
    undo = False
    try:
        yield entry
    except BaseException as error:
        undo = status_of(error) == "cancelled"
        raise
    finally:
        entry.asker.leave(undo=undo)
        with contextlib.suppress(ValueError):  # the block began in another context: then there is nothing to restore
            _current.reset(token)


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
