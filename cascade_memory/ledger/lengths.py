"""Limits of what is read from a file of somebody else: SQLite refuses a longer value before it is in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator

from cascade_memory.domain.interruptible import interruptible

_LENGTH = 0  # SQLITE_LIMIT_LENGTH
LONGEST_VALUE = 32 * 2**20  # bytes of one value: several times the longest solution, with its steps as JSON


@interruptible
def at_most(connection: sqlite3.Connection, most: int) -> Generator[None, None, None]:
    """Let statements fail ("string or blob too big") that read a longer value. Before Python 3.11, they do not."""
    set_limit: Callable[[int, int], int] | None = getattr(connection, "setlimit", None)
    if set_limit is None:
        yield
        return
    before = set_limit(_LENGTH, most)
    try:
        yield
    finally:
        set_limit(_LENGTH, before)
