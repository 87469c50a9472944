"""Watches a long run: its progress where no terminal shows a bar, as in the log of a batch job, and its peak memory.

The memory is that of the GPU where there is one, otherwise of the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import re
import sys
import time
from pathlib import Path

EVERY = 60.0  # seconds
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


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


class PeakMemory:
    """Measures peak memory, with everything that was allocated after this object was created, such as the model's weights.

    On CUDA the measure is what PyTorch has allocated since, on all devices together. Without CUDA it is the growth of the
    process's resident memory. Only Linux can measure this growth; on other systems the result is None.
    """

    def __init__(self, *, cuda: bool) -> None:
        self._cuda = cuda
        _free_what_is_unused()
        self._before = _allocated() if cuda else _resident("VmRSS")

    def begin(self) -> None:
        """Forget earlier peaks."""
        if self._cuda:
            import torch

            for device in range(torch.cuda.device_count()):
                torch.cuda.reset_peak_memory_stats(device)
            return
        try:
            _RESET.write_text("5", encoding="ascii")  # Linux: the highest resident size begins again at the present one
        except OSError:
            return

    def gib(self) -> float | None:
        """Return the peak since ``begin``, in GiB; None if it cannot be measured."""
        if self._cuda:
            import torch

            peaks = sum(torch.cuda.max_memory_allocated(device) for device in range(torch.cuda.device_count()))
            return max(0, peaks - (self._before or 0)) / 2**30
        peak = _resident("VmHWM")
        return None if peak is None or self._before is None else max(0, peak - self._before) / 2**30


def _allocated() -> int:
    import torch

    return sum(torch.cuda.memory_allocated(device) for device in range(torch.cuda.device_count()))


def _free_what_is_unused() -> None:
    """Free what earlier work left: otherwise a later model would take its place, and its growth would not be seen."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)


def _resident(name: str) -> int | None:
    """Return a number of bytes from the process's status file; None if this cannot be read."""
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(encoding="ascii", errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1]) * 1024
