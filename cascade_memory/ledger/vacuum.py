"""Writing a ledger anew in another process: what it takes for that is that process's, and so is the place for the copy."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from cascade_memory.errors import StoreError

# SQLite makes the copy in a file without a name, where this variable says when a process first needs one: it is read once, and
# the host's own SQLite is not ours to direct. The texts of cases belong into the memory's folder, not into /tmp.
_PLACE = "SQLITE_TMPDIR"
_CACHE_KB = 32_768  # of the ledger, and as much of the copy

# It ends without closing the ledger: whoever closes it last deletes its log, and a host that has read the file itself, which
# takes its locks away, would look to SQLite as if it were not there.
_PROGRAM = """
import os, sqlite3, sys
try:
    connection = sqlite3.connect(sys.argv[1], uri=True, isolation_level=None, timeout=30)
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA cache_size = -" + sys.argv[2])
    connection.execute("VACUUM")
except sqlite3.Error as error:
    sys.stderr.write(str(error))
    sys.stderr.flush()
    os._exit(1)
os._exit(0)
"""


def vacuum_elsewhere(path: Path) -> None:
    """Rewrite a ledger without its free pages; raises ``sqlite3.OperationalError`` as if it had been done here."""
    there = f"{path.absolute().as_uri()}?mode=rw"  # SQLite makes no other file where it is gone
    command = [sys.executable, "-I", "-c", _PROGRAM, there, str(_CACHE_KB)]  # "-I": no module of the working directory
    try:
        done = subprocess.run(
            command,
            env={**os.environ, _PLACE: str(path.parent)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise StoreError(f"cannot start a process that writes {path} anew: {error}; nothing was purged yet") from error
    if done.returncode:
        raise sqlite3.OperationalError(done.stderr.strip() or f"the process that writes it anew ended with {done.returncode}")
