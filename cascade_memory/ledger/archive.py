"""The part of the ledger that exports and imports it as plain records, and copies it; and the way back from a copy."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.private_files import create_file
from cascade_memory.domain.sqlite_files import at_most, connected
from cascade_memory.domain.trajectory import Solution
from cascade_memory.errors import StoreCorrupt, StoreError
from cascade_memory.ledger import action_log, redeeming, transfer
from cascade_memory.ledger.audit import first_fault
from cascade_memory.ledger.belonging import begin_generation
from cascade_memory.ledger.database import Database, take_long
from cascade_memory.ledger.structure import STATISTICS, check_structure
from cascade_memory.ledger.upgrade import check_version

_COUNTED = {"cases": "cases", "episodes": "episode", "outcomes": "outcome"}
_LONGEST_VALUE = 32 * 2**20  # bytes of one value: several times the longest solution, with its steps as JSON


class SQLArchive(ABC):
    """Exports and imports the content of a ledger; how it is copied as a whole depends on the database."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def dump(self) -> Generator[dict[str, Any], None, None]:
        """Yield everything as JSON-compatible records, from one consistent state, in an order in which they can be loaded.

        Close the generator if you stop early, and after an error.
        """
        with self._connections.snapshot() as connection:
            yield from transfer.dump(connection)

    def load(
        self, records: Iterable[dict[str, Any]], dimension: int, key: Callable[[Solution], str], action: NewAction | None = None
    ) -> int:
        """Add the records that do not exist yet, durably; return how many. ``key`` is the matcher's (``SolutionMatcher.key``).

        Adds all of them or none: an invalid record raises ``InvalidInput``, and nothing is added.
        """
        with self._connections.write(durable=True) as connection:
            take_long(connection)
            inserted = transfer.load(connection, records, dimension, key)
            if inserted:
                self._connections.belonging.claim(connection)
            action_log.write(connection, 0, action, counts={"records": inserted})
            return inserted

    @abstractmethod
    def copy_to(self, target: Path) -> dict[str, int]:
        """Write one consistent state to a new file and check it; return how many ``cases``, ``episodes``, ``outcomes`` it has.

        Other writers can go on meanwhile. Facts about mirrors and the fact ``identity`` are not copied.
        """


class SQLiteArchive(SQLArchive):
    """Exports and imports the content of a ledger in a SQLite file, and copies the file."""

    def copy_to(self, target: Path) -> dict[str, int]:
        """Write one consistent state to a new file while others go on writing; return counts of what the copy holds."""
        with self._connections.read() as connection:
            create_file(target)  # created with private permissions; SQLite fills it
            connection.execute("VACUUM INTO ?", (str(target),))
            with connected(target) as copy:
                copy.execute("PRAGMA secure_delete = ON")
                # The copy has no Chroma yet, and must not share the one of the original.
                copy.execute("DELETE FROM meta WHERE key LIKE 'mirror%' OR key = 'identity'")
                copy.execute(redeeming.LET_GO)  # whoever gets the copy must not be able to sign for the original
                copy.commit()
            return verified(target)


def put_copy(source: Path, target: Path) -> None:
    """Copy a ledger, its write-ahead log included, over another one that nobody has open, in one transaction."""
    if not target.exists():
        create_file(target)
    with connected(source, "mode=ro") as from_, connected(target, isolation_level=None, timeout=5) as to:
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
            return _read_whole(connection, path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter if SQLite's own message is not UTF-8
        raise StoreCorrupt(f"{path} is not a readable ledger ({error}); nothing was changed") from error


def _read_whole(connection: sqlite3.Connection, path: Path) -> dict[str, int]:
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
