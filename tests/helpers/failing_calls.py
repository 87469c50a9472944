"""Makes chosen write calls of this process fail: the n-th that touches a folder, or all from the n-th on."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

_NAME = "libfailing_calls.so"


def compiler() -> str | None:
    """Return a C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc")


def preload(folder: Path) -> dict[str, str]:
    """Build the library in a folder and return the environment that a process needs to be under its control."""
    built, cc = folder / _NAME, compiler()
    assert cc is not None
    source = Path(__file__).with_name("failing_calls.c")
    subprocess.run([cc, "-shared", "-fPIC", "-O1", "-o", str(built), str(source), "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(built)}


def loaded() -> bool:
    """Say whether this process is under control."""
    return sys.platform == "linux" and _NAME in os.environ.get("LD_PRELOAD", "")


class FailingCalls:
    """Arms and disarms; counts every call that writes under the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder).encode()
        self._library = ctypes.CDLL(None)
        self._library.fault_count.restype = self._library.fault_failed.restype = ctypes.c_long
        self._library.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]

    def arm(self, nth: int, error: int, *, lasting: bool) -> None:
        """Fail the n-th call from now on, counted from 1; 0 counts only."""
        self._library.fault_arm(self._folder, nth, error, int(lasting))

    def disarm(self) -> tuple[int, int]:
        """Let everything through; return how many calls there were, and how many failed."""
        self._library.fault_disarm()
        return int(self._library.fault_count()), int(self._library.fault_failed())
