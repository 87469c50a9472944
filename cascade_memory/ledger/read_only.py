"""Opens a ledger for reading only if it cannot be written: on a full disk, or without permission."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from cascade_memory.domain.sqlite_files import connect
from cascade_memory.errors import StoreUnwritable
from cascade_memory.ledger.schema import SCHEMA_VERSION
from cascade_memory.ledger.structure import check_structure
from cascade_memory.ledger.upgrade import check_version

_BUSY_S = 5.0
State = tuple[int, ...]


def opened_for_reading(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Open a read-only connection; return it, and whether it was opened as immutable (SQLite assumes that nobody writes).

    The write-ahead log needs a ``-shm`` file beside the ledger. If that does not exist and cannot be created, the ledger can
    only be read without its log, and only if the log is empty, as it is after every clean close.
    """
    failure: sqlite3.Error | None = None
    for option in ("mode=ro", "immutable=1"):
        if option != "mode=ro" and _has_log(path):
            continue
        connection = connect(
            path, option, check_same_thread=False, isolation_level=None, timeout=_BUSY_S, cached_statements=256
        )
        try:
            _check(connection, path)
            connection.execute("PRAGMA temp_store = MEMORY")
        except sqlite3.OperationalError as error:
            connection.close()
            failure = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection, option != "mode=ro"
    raise StoreUnwritable(
        f"{path} can neither be written nor read ({failure}): the newest writes are in {path.name}-wal, and reading that file "
        "needs space for a small file beside it; free some space, or check its permissions: nothing is lost"
    ) from failure


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    check_version(application, version, str(path))
    if version != SCHEMA_VERSION:
        raise StoreUnwritable(
            f"{path} has schema version {version} and must be upgraded to {SCHEMA_VERSION}, but cannot be written; "
            "check its permissions and its disk"
        )
    check_structure(connection, version, str(path))


def _has_log(path: Path) -> bool:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def state_of(path: Path) -> State:
    """Return values that change whenever the ledger is written."""
    found: list[int] = []
    for name in (path, f"{path}-wal"):
        try:
            status = os.stat(name)
        except OSError:
            found += (0, 0, 0)
        else:
            found += (status.st_ino, status.st_size, status.st_mtime_ns)
    return tuple(found)
