"""Attaches the callback handler to every run that begins in a ``contextvars`` context, so that no call need pass it."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

from langchain_core.tracers.context import register_configure_hook

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler


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
