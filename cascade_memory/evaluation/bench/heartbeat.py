"""Reports the progress of a long run where no terminal shows a progress bar, as in the log of a batch job."""

from __future__ import annotations

import sys
import time

EVERY = 60.0  # seconds


class Heartbeat:
    """Writes the progress of a run to standard error once a minute, unless a terminal shows a progress bar.

    >>> Heartbeat("banking77, CASCADE", 300).beat(1, solved=1)
    """

    def __init__(self, what: str, total: int, *, on: bool = True) -> None:
        self._what, self._total = what, total
        self._on = on and not sys.stderr.isatty()
        self._began = self._last = time.monotonic()

    def beat(self, done: int, *, solved: int) -> None:
        """Write how many tasks are done and how many of them were solved, if a minute has passed since the last time."""
        now = time.monotonic()
        if not self._on or now < self._last + EVERY:
            return
        self._last = now
        left = (self._total - done) * (now - self._began) / done / 60
        sys.stderr.write(
            f"{self._what}: {done:,} of {self._total:,} tasks, {solved:,} solved, about {left:,.0f} minutes left\n"
        )
        sys.stderr.flush()
