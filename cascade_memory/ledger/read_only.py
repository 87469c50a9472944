"""Reading a ledger that cannot be written: on a full disk, in a folder without permission."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from cascade_memory.errors import StoreUnwritable
from cascade_memory.ledger.schema import SCHEMA_VERSION
from cascade_memory.ledger.structure import check_structure
from cascade_memory.ledger.untrusted import check_plain, harden
from cascade_memory.ledger.upgrade import check_version

_BUSY_S = 5.0
State = tuple[int, ...]


def opened_for_reading(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Return a connection that only reads, and whether it takes for granted that nobody writes.

    The write-ahead log needs a ``-shm`` file beside the ledger. Where there is none and none can be made, the ledger can be
    read without its log, if that is empty: as everybody leaves it who closes the folder.
    """
    check_plain(path)
    failure: sqlite3.Error | None = None
    for option in ("mode=ro", "immutable=1"):
        if option != "mode=ro" and _has_log(path):
            continue
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?{option}",
            uri=True,
            check_same_thread=False,
            isolation_level=None,
            timeout=_BUSY_S,
            cached_statements=256,
        )
        try:
            harden(connection)
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
        f"{path} can neither be written nor read ({failure}): what was written last stands in {path.name}-wal, and reading "
        "that needs room for a small file beside it; free some space, or check its permissions: nothing is lost"
    ) from failure


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    check_version(application, version, str(path))
    if version != SCHEMA_VERSION:
        raise StoreUnwritable(
            f"{path} has schema version {version} and would have to be brought to {SCHEMA_VERSION}, but cannot be written; "
            "check its permissions and its disk"
        )
    check_structure(connection, version, str(path))


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def state_of(path: Path) -> State:
    """Return what changes when somebody writes the ledger."""
    found: list[int] = []
    for name in (path, f"{path}-wal"):
        try:
            status = os.stat(name)
        except OSError:
            found += (0, 0, 0)
        else:
            found += (status.st_ino, status.st_size, status.st_mtime_ns)
    return tuple(found)
