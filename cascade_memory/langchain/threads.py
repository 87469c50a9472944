"""Blocking work without blocking an event loop, in the context of whoever asked."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_context(call: Callable[[], T]) -> T:
    """Return what a call returns; it sees the caller's context variables."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(None, lambda: context.run(call))
