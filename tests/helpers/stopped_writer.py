"""Another process that is stopped in the middle of a write transaction."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_PROGRAM = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO meta VALUES ('stopped', 'writer')")
print("ready", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextlib.contextmanager
def stopped_writer(folder: Path) -> Iterator[None]:
    """Hold the folder's write lock, by a process that does nothing any more, until the block ends."""
    command = [sys.executable, "-c", _PROGRAM, str(folder / "ledger.sqlite3")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        try:
            yield
        finally:
            os.kill(process.pid, signal.SIGKILL)
