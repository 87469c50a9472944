"""Rewrites a ledger file in another process, so that the RAM and the temporary folder for this are not the host's."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from cascade_memory.domain.sqlite_files import check_files
from cascade_memory.errors import StoreError

# SQLite writes the copy to a temporary file, in the folder that this variable names (the latter on Windows). The texts of cases
# must not go to /tmp. A process reads the variable only once, and in the host's process it would also affect the host's own use
# of SQLite.
_PLACES = ("SQLITE_TMPDIR", "TMP")
_CACHE_KB = 32_768  # for the ledger, and the same again for the copy

# The program exits without closing the ledger. The last process that closes a ledger deletes its log, and SQLite knows by the
# locks on the file whether others have it open. A host that opened and closed the file itself has lost its locks on it, so
# SQLite would not notice that host.
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
    """Rewrite a ledger without its free pages; raise ``sqlite3.OperationalError`` if SQLite fails in the other process."""
    check_files(path)
    uri = f"{path.absolute().as_uri()}?mode=rw"  # with mode=rw, SQLite does not create the file if it is gone
    command = [sys.executable, "-I", "-c", _PROGRAM, uri, str(_CACHE_KB)]  # "-I": import nothing from the working directory
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **dict.fromkeys(_PLACES, str(path.parent))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise StoreError(f"cannot start the process that rewrites {path}: {error}; nothing was purged yet") from error
    if done.returncode:
        raise sqlite3.OperationalError(done.stderr.strip() or f"the process that rewrites it ended with {done.returncode}")
