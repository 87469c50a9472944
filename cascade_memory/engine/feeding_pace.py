"""Decides when the mirror may be written: while no caller waits for an answer, or after the mirror has waited long enough."""

from __future__ import annotations

import time
from collections.abc import Callable

QUIET = 1.0  # seconds without a recall or a reward: Chroma's writes hold the GIL, 30 to 200 ms per batch
_LATEST = 20.0  # seconds after which the mirror is fed even if the engine is busy
_LONGEST_BACKOFF = 60.0


class FeedingPace:
    """Waits for quiet moments, and longer after each failure in a row."""

    def __init__(self, idle: Callable[[], float]) -> None:
        self._idle = idle
        self.not_before = 0.0  # on the monotonic clock; no feeding before this time
        self._waiting_since = 0.0
        self._failures_in_a_row = 0

    @property
    def backs_off(self) -> bool:
        """True while it is too early to try again after a failure."""
        return time.monotonic() < self.not_before

    def failed(self) -> None:
        """Record a failure: double the wait, up to a minute."""
        self._failures_in_a_row += 1
        self.not_before = time.monotonic() + min(_LONGEST_BACKOFF, 2.0 ** min(self._failures_in_a_row, 10))

    def succeeded(self) -> None:
        """Record a success: the next failure begins with the shortest wait again."""
        self._failures_in_a_row = 0

    def is_good(self, behind: Callable[[], bool]) -> bool:
        """Say whether this is a good moment to write; ``behind`` returns whether there is anything to write."""
        if self._idle() >= QUIET:
            return True
        if not behind():
            self._waiting_since = 0.0
            return True  # nothing to write, so no caller has to wait
        self._waiting_since = self._waiting_since or time.monotonic()
        if time.monotonic() - self._waiting_since < _LATEST:
            return False
        self._waiting_since = 0.0
        return True
