"""Forked processes that say what they did, line by line, and may be killed at any moment."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

FAILED = "!"  # begins the line of a process that met an exception


class Child:
    """A forked process and the pipe on which it reports."""

    def __init__(self, work: Callable[[int], None]) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            _work(work, writing)
        os.close(writing)
        os.set_blocking(reading, False)
        self._pipe, self._rest, self.status = reading, b"", None

    def lines(self) -> Iterator[str]:
        """Yield what was reported since the last look: whole lines only."""
        while True:
            try:
                part = os.read(self._pipe, 65_536)
            except BlockingIOError:
                return
            if not part:
                return
            *whole, self._rest = (self._rest + part).split(b"\n")
            for line in whole:
                yield line.decode()

    def ended(self) -> bool:
        """Say whether the process is gone, and take note of how it went."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def kill(self) -> None:
        """Kill it, unless it is gone, and wait until the kernel has taken it apart."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self._pipe)


def _work(work: Callable[[int], None], pipe: int) -> None:
    status = 1
    try:
        work(pipe)
        status = 0
    except BaseException:
        say(pipe, FAILED, traceback.format_exc().replace("\n", " | ")[-2000:])
    finally:
        os._exit(status)


def say(pipe: int, *words: object) -> None:
    """Report one line, in one piece: a kill cannot part it."""
    os.write(pipe, (" ".join(map(str, words)) + "\n").encode())


def finished(work: Callable[[int], None], seconds: float = 120.0) -> list[str]:
    """Fork, wait for the end, and return what was reported."""
    child, found = Child(work), []
    deadline = time.monotonic() + seconds
    while not child.ended() and time.monotonic() < deadline:
        found += child.lines()
        time.sleep(0.005)
    child.kill()
    found += child.lines()
    child.close()
    if child.status != 0 and not any(line.startswith(FAILED) for line in found):
        found.append(f"{FAILED} ended with status {child.status}")
    return found


def processes_naming(text: str) -> list[int]:
    """Return the processes whose command line names something."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if any("build_mirror" in word for word in words) and any(text in word for word in words):
                    found.append(int(entry.name))
    return found


def left_behind(text: str, seconds: float = 3.0) -> int:
    """Return how many builders are still there after a moment of grace."""
    deadline = time.monotonic() + seconds
    while (there := processes_naming(text)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return len(there)
