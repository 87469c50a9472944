"""Opens the SQLite file of a ledger; creates or upgrades it if necessary.

If it cannot be written, on a full disk or without permission, it is opened for reading only.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any

from cascade_memory.domain.private_files import create_file, make_private
from cascade_memory.domain.sqlite_files import BESIDE, check_files, connect
from cascade_memory.domain.waiting import seconds_left
from cascade_memory.errors import StoreError, StoreUnwritable
from cascade_memory.ledger import numbering
from cascade_memory.ledger.schema import APPLICATION_ID, SCHEMA_VERSION, STATEMENTS
from cascade_memory.ledger.structure import check_structure
from cascade_memory.ledger.upgrade import check_version, lacked_by, upgrade

_READING_BUSY_S = 5.0
State = tuple[int, ...]
BUSY_MS = 30_000


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
            path, option, check_same_thread=False, isolation_level=None, timeout=_READING_BUSY_S, cached_statements=256
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


def check_sqlite() -> None:
    """Raise if SQLite is too old."""
    if sqlite3.sqlite_version_info < (3, 35):
        raise StoreError(f"this Python comes with SQLite {sqlite3.sqlite_version}; 3.35 or newer is needed (RETURNING)")


def opened(path: Path | None, name: str | None, synchronous: str, *, first: bool) -> sqlite3.Connection:
    """Open a ledger, in a file or in RAM. The ``first`` connection of a process checks that the file is a ledger.

    ``name`` is the path as it was when the ledger was opened: the working directory may have changed since.
    """
    if first and path is not None:
        _make_private(path)
    options: dict[str, Any] = {
        "check_same_thread": False,
        "isolation_level": None,
        "timeout": _patience(),
        "cached_statements": 256,
    }
    connection = sqlite3.connect(":memory:", **options) if name is None else connect(Path(name), **options)
    try:
        if first:
            _prepare(connection, str(path))  # before any change: the file may belong to another program
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        if path is not None:
            _enter_wal(connection)
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            if synchronous == "FULL":
                connection.execute("PRAGMA fullfsync = ON")  # on macOS a sync alone leaves the bytes in the disk's own cache
            connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    except BaseException:
        connection.close()
        raise
    return connection


def _make_private(ledger: Path) -> None:
    """Let only the owner read and write the ledger and the files beside it; create the ledger if it does not exist."""
    check_files(ledger)
    try:
        if not ledger.exists():
            create_file(ledger)
    except OSError as error:
        raise StoreUnwritable(f"{ledger} cannot be written ({error}); check its permissions and its disk") from error
    for end in ("", *BESIDE):  # files that SQLite creates later get the permissions of the ledger
        make_private(ledger.with_name(ledger.name + end))


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    # Another process may be creating the file right now. If there is nothing to do, do not wait for it.
    begin = "BEGIN" if _is_ready(connection) else "BEGIN IMMEDIATE"
    try:
        connection.execute(begin)
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if tables == 0:
            for statement in STATEMENTS:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        else:
            check_version(application, version, path)
            check_structure(connection, version, path)
            upgrade(connection, version)
            numbering.heal(connection, path)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.rollback()


def _is_ready(connection: sqlite3.Connection) -> bool:
    (application,), (version,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    return (application, version) == (APPLICATION_ID, SCHEMA_VERSION) and not lacked_by(connection)


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; try again while another process is about to do the same, since SQLite does not wait here."""
    deadline = time.monotonic() + _patience()
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _patience() -> float:
    left = seconds_left()
    return BUSY_MS / 1000 if left is None else left
