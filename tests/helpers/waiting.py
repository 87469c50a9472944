"""Waits until something has happened in another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(true: Callable[[], object], seconds: float = 20.0, *, where: str = "") -> None:
    """Ask again and again; fail if it does not come to that in time, and say ``where`` that was."""
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, f"it never came to that {where}".rstrip()
        time.sleep(0.002)
