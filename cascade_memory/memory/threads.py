"""Blocking work, without blocking an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


async def in_thread(call: Callable[[], Any]) -> Any:
    """Return what a call returns."""
    # The default executor of whichever loop is running: nothing of asyncio is kept, so any loop will do.
    return await asyncio.get_running_loop().run_in_executor(None, call)
