"""Restores copies of a ledger file, and checks whether a file is an intact ledger."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from cascade_memory.domain.private_files import create_file
from cascade_memory.domain.sqlite_files import at_most, connected
from cascade_memory.errors import StoreCorrupt, StoreError
from cascade_memory.ledger import redeeming
from cascade_memory.ledger.audit import first_fault
from cascade_memory.ledger.belonging import begin_generation
from cascade_memory.ledger.structure import STATISTICS, check_structure
from cascade_memory.ledger.upgrade import check_version

_COUNTED = {"cases": "cases", "episodes": "episode", "outcomes": "outcome"}
_LONGEST_VALUE = 32 * 2**20  # bytes of one value: several times the longest solution, with its steps as JSON


def put_copy(source: Path, target: Path) -> None:
    """Copy a ledger, its write-ahead log included, over another one that nobody has open, in one transaction."""
    if not target.exists():
        create_file(target)
    with (
        connected(source, "mode=ro") as from_,
        connected(target, isolation_level=None, timeout=5) as to,
    ):
        try:
            # Until this is closed: another process may have opened it since the check.
            to.execute("PRAGMA locking_mode = EXCLUSIVE")
            to.execute("BEGIN EXCLUSIVE")
            to.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise StoreError(f"{target} is in use ({error}); close it everywhere before it is restored") from error
        try:
            from_.backup(to)
            _make_its_own(to)
        except sqlite3.DatabaseError as error:  # a header may say that nobody may write the file
            raise StoreCorrupt(f"the copy of {source} cannot be used ({error}); restore another backup") from error


def _make_its_own(copy: sqlite3.Connection) -> None:
    """Delete what the copy must not have from the original: facts about mirrors and tokens, and SQLite's statistics.

    The statistics serve SQLite's query planner, and wrong ones make every search slow.
    """
    copy.execute("PRAGMA secure_delete = ON")
    copy.execute("BEGIN")
    copy.execute("DELETE FROM meta WHERE key LIKE 'mirror%'")
    copy.execute(redeeming.LET_GO)  # what was redeemed since the copy was made must not be redeemed again
    for table in STATISTICS:
        copy.execute(f"DROP TABLE IF EXISTS {table}")
    begin_generation(copy)
    copy.execute("COMMIT")


def verified(path: Path) -> dict[str, int]:
    """Read a ledger file completely without changing it; return counts of its content, or raise if it is damaged."""
    try:
        with connected(path, "mode=ro") as connection, at_most(connection, _LONGEST_VALUE):
            return _read(connection, path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter if SQLite's own message is not UTF-8
        raise StoreCorrupt(f"{path} is not a readable ledger ({error}); nothing was changed") from error


def _read(connection: sqlite3.Connection, path: Path) -> dict[str, int]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    check_version(application, version, str(path))
    check_structure(connection, version, str(path))
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok" or connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise StoreCorrupt(f"{path} is damaged ({verdict}); nothing was changed")
    if (fault := first_fault(connection)) is not None:
        raise StoreCorrupt(f"{path} holds a row that cannot be used: {fault}; nothing was changed")
    return {name: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for name, table in _COUNTED.items()}
