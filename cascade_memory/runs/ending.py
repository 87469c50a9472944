"""Translates how a run ended into the memory's words."""

from __future__ import annotations

import asyncio


def status_of(error: BaseException | None, *stopped: type[BaseException]) -> str:
    """Return the status of a run that ended with an exception: "error", which may be judged, or "cancelled", which may not.

    ``stopped`` are the framework's own exceptions for a run that somebody stopped.

    >>> status_of(ValueError("no such tool")), status_of(KeyboardInterrupt()), status_of(asyncio.CancelledError())
    ('error', 'cancelled', 'cancelled')
    """
    if isinstance(error, (asyncio.CancelledError, GeneratorExit, *stopped)) or not isinstance(error, Exception):
        return "cancelled"
    return "error"
