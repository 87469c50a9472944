"""An event that one thread waits for, and that an interrupt cannot leave half set.

``threading.Event`` is written in Python. An interrupt in its ``set`` may leave its lock locked; then the next thread that sets
the event, or waits for it, waits for ever.
"""

from __future__ import annotations

import queue
import time


class Flag:
    """A flag that one thread waits for and any number of threads set and clear.

    >>> flag = Flag()
    >>> flag.wait(0.0)
    False
    >>> flag.set()
    >>> flag.wait()
    True
    """

    def __init__(self) -> None:
        self.is_set = False  # store False here to clear it
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()  # written in C, like the locks of ``with``

    def set(self) -> None:
        """Set the flag, and wake the thread that waits."""
        if not self.is_set:
            self.is_set = True
            self._woken.put(None)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the flag is set, but no longer than ``seconds``; return whether it is set."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self.is_set:
            left = None if until is None else until - time.monotonic()
            try:
                self._woken.get(timeout=left) if left is None or left > 0 else self._woken.get_nowait()
            except queue.Empty:
                break
        return self.is_set
