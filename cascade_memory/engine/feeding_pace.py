"""When the mirror may be written: while nobody waits for an answer, or after it has waited long enough itself."""

from __future__ import annotations

import time
from collections.abc import Callable

QUIET = 1.0  # seconds without a recall or a reward: Chroma's writes hold Python's lock, 30 to 200 ms a batch
_LATEST = 20.0  # seconds after which it is fed all the same
_LONGEST_BACKOFF = 60.0


class FeedingPace:
    """Waits for quiet moments, and ever longer after failures that follow each other."""

    def __init__(self, idle: Callable[[], float]) -> None:
        self._idle = idle
        self.not_before = 0.0  # by the monotonic clock; it backs off until then
        self._waiting_since = 0.0
        self._failures_in_a_row = 0

    @property
    def backs_off(self) -> bool:
        """True while it is too early after a failure."""
        return time.monotonic() < self.not_before

    def failed(self) -> None:
        """Wait twice as long as after the last failure."""
        self._failures_in_a_row += 1
        self.not_before = time.monotonic() + min(_LONGEST_BACKOFF, 2.0 ** min(self._failures_in_a_row, 10))

    def succeeded(self) -> None:
        """Begin anew after the next failure."""
        self._failures_in_a_row = 0

    def is_good(self, behind: Callable[[], bool]) -> bool:
        """Say whether this is a good moment to write; ``behind`` tells whether there is anything."""
        if self._idle() >= QUIET:
            return True
        if not behind():
            self._waiting_since = 0.0
            return True  # there is nothing to write
        self._waiting_since = self._waiting_since or time.monotonic()
        if time.monotonic() - self._waiting_since < _LATEST:
            return False
        self._waiting_since = 0.0
        return True
