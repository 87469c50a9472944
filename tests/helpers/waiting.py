"""Waits until something has happened in another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(true: Callable[[], object], seconds: float = 20.0) -> None:
    """Ask again and again; fail if it does not come to that in time."""
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it never came to that"
        time.sleep(0.002)
