"""How a run ended, as the memory is to read it."""

from __future__ import annotations

import asyncio


def status_of(error: BaseException | None, *stopped: type[BaseException]) -> str:
    """Return the status of a run that ended with an exception: after an "error" it may be judged, a "cancelled" run may not.

    ``stopped`` are the framework's own exceptions that say that somebody stopped the run.

    >>> status_of(ValueError("no such tool")), status_of(KeyboardInterrupt()), status_of(asyncio.CancelledError())
    ('error', 'cancelled', 'cancelled')
    """
    if isinstance(error, (asyncio.CancelledError, GeneratorExit, *stopped)) or not isinstance(error, Exception):
        return "cancelled"
    return "error"
