"""``with memory.episode(query) as episode``: every recall inside joins the episode, whichever chain or agent recalls.

For this, the callback handler is attached to every run that begins in a ``contextvars`` context, so that no call need pass it.
"""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING

from langchain_core.tracers.context import register_configure_hook

from cascade_memory.memory.session import Session
from cascade_memory.runs.around import ActiveEpisode, active_episode, within

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler
    from typing_extensions import Self

    from cascade_memory.domain.trajectory import Solution
    from cascade_memory.memory.memory import Memory
    from cascade_memory.memory.session import MakesRecall


class Attachment:
    """Attaches one handler through a context variable, which LangChain reads whenever a run begins."""

    def __init__(self, handler: BaseCallbackHandler) -> None:
        self._handler = handler
        self._variable: ContextVar[BaseCallbackHandler | None] | None = None

    def attach(self) -> Attached:
        """Attach the handler in this context, until the returned object is detached or leaves its ``with`` block."""
        if self._variable is None:  # registration is permanent, so it is done only for memories that need it
            self._variable = ContextVar("cascade_memory_handler", default=None)
            register_configure_hook(self._variable, inheritable=True)
        return Attached(self._variable, self._variable.set(self._handler))


class Attached:
    """An attached handler: use it in a ``with`` block, or call ``detach()`` to detach it."""

    def __init__(self, variable: ContextVar[BaseCallbackHandler | None], token: Token[BaseCallbackHandler | None]) -> None:
        self._variable, self._token = variable, token

    def detach(self) -> None:
        """Detach the handler, and attach the one from before again, if any. A second call does nothing."""
        with contextlib.suppress(ValueError, RuntimeError):  # called in another context, or a second time
            self._variable.reset(self._token)

    def __enter__(self) -> Attached:
        """Return this object; the handler stays attached until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Detach the handler."""
        self.detach()


class Block(Session):
    """The ``with memory.episode(...)`` block of one task.

    Unless you set ``solution``, the solution is what the last run inside the block did. ``solution``, ``reward(...)`` and the
    end of the block work as in ``cascade_memory.CascadeMemory.episode``.
    """

    interrupted = False  # True if the last run inside is interrupted and waits for a person

    def __init__(self, memory: Memory, makes: MakesRecall, attachment: Attachment) -> None:
        super().__init__(memory, makes)
        self._of = memory
        self._attachment = attachment
        self._stack = ExitStack()
        self._watched: Solution | None = None

    def watched(self, solution: Solution | None) -> None:
        """Take the solution of a run inside the block, unless the user has set ``solution``."""
        if self.solution is self._watched:
            self.solution = self._watched = solution

    def __enter__(self) -> Self:
        """Attach the callback handler and make this episode the active one, until the block ends."""
        entry = ActiveEpisode(memory=self._of, episode_id=self.id, namespace=self.recall.namespace, session=self)
        self._stack.enter_context(self._attachment.attach())
        self._stack.enter_context(within(entry))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Settle or censor the episode, or leave it open; see ``Session.__exit__``. An interrupted run leaves it open."""
        self._stack.close()
        if not self._waits(error):
            super().__exit__(kind, error, traceback)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do what ``__exit__`` does, without blocking the event loop."""
        self._stack.close()
        if not self._waits(error):
            await super().__aexit__(kind, error, traceback)

    def _waits(self, error: BaseException | None) -> bool:
        """If the last run was interrupted and may be resumed, mark the open episode as interrupted and return True."""
        if error is None and self.interrupted and not self._rewarded:
            self._of.episodes.finish(self.id, status="interrupted")
            return True
        return False


def block_around(memory: Memory) -> Block | None:
    """Return the user's own ``with memory.episode(...)`` block, if the running code is directly inside one."""
    found = active_episode(memory)
    return found.session if found is not None and isinstance(found.session, Block) else None
