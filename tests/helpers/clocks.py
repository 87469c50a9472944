"""Clocks that a test moves: nobody waits for cases to grow old."""

from __future__ import annotations

import time

import pytest
from inside import state_of

from cascade_memory import CascadeMemory
from cascade_memory.ledger import running


class Clocks:
    """The wall clock, which anybody may set, and the clock of the boot, which only goes on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.real = 0.0  # seconds that have really passed
        self.wall_ahead, self.boot_offset, self.boot = 0.0, 1_000.0, "one"
        self._began = time.time()
        self.stuck: float | None = None
        patch.setattr(time, "time", self.wall)
        patch.setattr(running, "clock", lambda: self.boot_offset + self.real)
        patch.setattr(running, "boot", lambda: self.boot)

    def wall(self) -> float:
        return self.stuck if self.stuck is not None else self._began + self.real + self.wall_ahead

    def reboot(self, uptime: float) -> None:
        """Another boot, or another machine: its clock may say anything."""
        self.boot, self.boot_offset = f"{self.boot}+", uptime - self.real

    def pass_for(self, memory: CascadeMemory, seconds: float) -> None:
        """Let time pass for a memory, which looks at the age of its cases before its next recall."""
        self.real += seconds
        state_of(memory).next_look = 0.0
