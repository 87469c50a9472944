"""The part of the ledger that checks it for damage, repairs it, changes its embedder, and rewrites its file.

Orphaned rows, rows that cannot be used, and times in the future can come from a torn file, from tampering, or from a clock
that was set back. The file is rewritten in another process, so that the RAM and the temporary folder for this are not the
host's.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cascade_memory.domain.sqlite_files import check_files
from cascade_memory.errors import StoreError
from cascade_memory.ledger import action_log, cases, owned
from cascade_memory.ledger.audit import Fault, faults
from cascade_memory.ledger.belonging import EMBEDDER, begin_generation
from cascade_memory.ledger.database import Connection, Database, take_long
from cascade_memory.ledger.mending import cured, summary
from cascade_memory.ledger.rows import SET_FACT, pack_floats

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
_AT_ONCE = 1_000  # faulty rows that are collected before any of them is repaired
_ROUNDS = 100  # rounds are repeated, since removing rows may orphan others
_TEXTS = " UNION ".join(f"SELECT query FROM {joined}" for joined in owned.WITH_QUERIES.values())


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


class SQLMaintenance(ABC):
    """The checks and repairs that every database needs."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def orphans(self) -> dict[str, int]:
        """Return the number of orphaned rows, which refer to nothing that exists, by table; tables without any are left out."""
        with self._connections.read() as connection:
            counts = {
                table: int(connection.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0])
                for table, where in owned.ORPHANS.items()
            }
            return {table: count for table, count in counts.items() if count}

    def remove_orphans(self) -> None:
        """Delete orphaned rows, including cases without a text or a vector."""
        with self._connections.write(durable=True) as connection:
            _remove_orphans(connection)

    def faults(self, limit: int) -> list[str]:
        """Return a description of each row that cannot be used, up to ``limit`` of them; unreadable facts are included."""
        with self._connections.read() as connection:
            return [str(fault) for fault in faults(connection, limit)]

    def mend(self, embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> str:
        """Repair rows or remove them; describe how many of which kind. An intact case is never removed.

        Derived values (vectors, digests, the head of a solution) are computed again, and counts start again; a case is removed
        if its query, its solution or its id is lost.
        """
        with self._connections.write(durable=True) as connection:
            take_long(connection)
            _defer(connection)
            done: Counter[str] = Counter()
            last: list[Fault] = []
            for _ in range(_ROUNDS):
                found = faults(connection, _AT_ONCE)
                for fault in found:
                    done[cured(connection, fault, embed)] += 1
                if not found or found == last:
                    break
                last = found
            _remove_orphans(connection)
            self._connections.belonging.adopt(connection)  # the generation may have been one of the rows
            return summary(done)

    def audit_log(self) -> tuple[bool, str]:
        """Return whether the digest of each audit log entry is right, and a sentence that says so or names the first wrong one.

        The digest of an entry is made from it and from the entry before it, and so reveals changes.
        """
        with self._connections.read() as connection:
            return action_log.check_chain(connection)

    def seal_audit_log(self) -> str:
        """Compute the audit log's digests again from the first wrong one on, and record this, durably; return a sentence."""
        with self._connections.write(durable=True) as connection:
            return action_log.seal_again(connection)

    def ahead_of(self, now: float) -> int:
        """Return how many stored times are in the future."""
        with self._connections.read() as connection:
            return sum(
                int(connection.execute(f"SELECT count(*) FROM {table} WHERE {column} > ?", (now,)).fetchone()[0])
                for table, column in owned.DATED
            )

    def bring_back(self, now: float) -> None:
        """Set stored times that are after ``now`` to ``now``, durably; otherwise rows with such times would never grow old."""
        with self._connections.write(durable=True) as connection:
            for table, column in owned.DATED:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} > ?", (now, now))

    def open_before(self, moment: float) -> int:
        """Return how many open episodes began before ``moment``."""
        query = "SELECT count(*) FROM episode WHERE status = 'open' AND opened_at < ?"
        with self._connections.read() as connection:
            return int(connection.execute(query, (moment,)).fetchone()[0])

    def odd_vectors(self, dimension: int) -> int:
        """Return how many vectors do not have the embedder's dimension."""
        with self._connections.read() as connection:
            lengths = (f"SELECT count(*) FROM {target} WHERE length(vector) <> ?" for target in owned.WITH_QUERIES)
            return sum(int(connection.execute(query, (4 * dimension,)).fetchone()[0]) for query in lengths)

    def query_texts(self) -> list[str]:
        """Return the distinct queries that have a vector."""
        with self._connections.read() as connection:
            return [row[0] for row in connection.execute(_TEXTS)]

    def replace_vectors(self, embed: Callable[[Sequence[str]], Mapping[str, NDArray[np.float32]]], embedder: str) -> int:
        """Give every query its new vector and store the embedder's name, durably: all or nothing. Return the number of cases.

        Queries that other processes add meanwhile are embedded here while those processes wait; after that, the writes of those
        processes are refused with ``StoreReplaced`` or ``EncoderMismatch``. Facts with names beginning with ``mirror`` are
        deleted, so that each mirror is filled again.
        """
        with self._connections.write(durable=True) as connection:
            take_long(connection)
            vectors = embed([row[0] for row in connection.execute(_TEXTS)])
            for target, tables in owned.WITH_QUERIES.items():
                for key, query in connection.execute(f"SELECT {target}.key, query FROM {tables}").fetchall():
                    connection.execute(f"UPDATE {target} SET vector = ? WHERE key = ?", (pack_floats(vectors[query]), key))
            connection.execute(SET_FACT, (EMBEDDER, embedder))
            connection.execute("DELETE FROM meta WHERE key LIKE 'mirror%'")
            begin_generation(connection)
            return int(connection.execute("SELECT count(*) FROM cases").fetchone()[0])

    @abstractmethod
    def integrity(self) -> str:
        """Return ``ok``, or the storage's own description of the damage."""

    @abstractmethod
    def rebuild_indexes(self) -> None:
        """Make every index of the storage anew from its table, if that can be done."""


class SQLiteMaintenance(SQLMaintenance):
    """The checks and repairs of a file, which may be damaged or edited."""

    def integrity(self) -> str:
        """Return SQLite's own verdict on the file: ``ok`` or what is wrong.

        An index that does not fit its table is wrong, too: a search by the index would find other rows than a full scan.
        """
        with self._connections.read() as connection:
            return str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])

    def rebuild_indexes(self) -> None:
        """Make every index anew from its table; a file that is damaged otherwise stays as it is."""
        with contextlib.suppress(StoreError, sqlite3.IntegrityError), self._connections.write(durable=True) as connection:
            connection.execute("REINDEX")


def _remove_orphans(connection: Connection) -> None:
    _defer(connection)
    orphaned = owned.ORPHANS
    for (key,) in connection.execute(f"SELECT key FROM cases WHERE {orphaned['cases']}").fetchall():
        cases.delete(connection, key)  # this is logged, since the case may be in an index
    for table, where in orphaned.items():
        connection.execute(f"DELETE FROM {table} WHERE {where}")


def _defer(connection: Connection) -> None:
    """Let SQLite check the references between tables only at the end of this transaction."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA defer_foreign_keys = ON")
