"""Blocking work, without blocking an event loop."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """Return what a call returns; it sees the caller's context variables."""
    context = contextvars.copy_context()
    # The default executor of whichever loop is running: nothing of asyncio is kept, so any loop will do.
    return await asyncio.get_running_loop().run_in_executor(None, lambda: context.run(call))
