"""A folder as the source or the target of a move: nobody else has its ledger open, or can open it meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from pathlib import Path

from cascade_memory.assembly import folder, opened
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.private_files import make_folder
from cascade_memory.domain.sqlite_files import BESIDE, connected
from cascade_memory.errors import StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.explained import FAILURES, explain
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.ports.snapshots import Snapshots
from cascade_memory.snapshots import SnapshotStore
from cascade_memory.stores.folder_files import remove

_PATIENCE = 2.0  # seconds for which a ledger may be in use: a process may just be closing it


class MovedFolder:
    """A folder, for the time of one move."""

    def __init__(self, root: Path) -> None:
        self._root, self.place = root, str(root)

    @interruptible
    def reading(self, *, while_open: bool) -> Generator[Connection, None, None]:
        """Yield a connection to the ledger; nobody else can open the ledger meanwhile, so ``while_open`` is ignored."""
        del while_open  # what a file's other users have not written yet is not known
        folder.check_there(self._root)
        with self._owned():
            SQLiteLedger(self._root / folder.LEDGER).close()  # checks its structure, and upgrades it
            with _read_alone(self._root / folder.LEDGER) as connection:
                yield connection

    def check_alone(self) -> None:
        """Do nothing: the connection itself keeps all others out."""

    @interruptible
    def writing(self) -> Generator[Connection, None, None]:
        """Yield a connection inside one transaction; if the transaction fails, a new folder is left without a ledger."""
        path = self._root / folder.LEDGER
        new = not path.exists()
        folder.ledger_path(self._root)
        with self._owned():
            ledger = SQLiteLedger(path)
            try:
                with ledger.connections.write(durable=True) as connection:
                    yield connection
                new = False
            finally:
                ledger.close()
                if new:
                    remove(self._root / folder.SNAPSHOTS)
                    for end in ("", *BESIDE):
                        remove(self._root / (folder.LEDGER + end))

    def learned(self, connection: Connection, *, anew: bool = False) -> Snapshots:
        """Return the store of snapshots; ``anew`` first deletes those that an earlier attempt may have left."""
        del connection
        if anew:
            remove(self._root / folder.SNAPSHOTS)
        return SnapshotStore(self._root / folder.SNAPSHOTS)

    @interruptible
    def _owned(self) -> Generator[None, None, None]:
        lock = OwnerLock(self._root / folder.LOCK)
        try:
            try:
                make_folder(self._root)
                free = not opened.is_open(self._root) and lock.try_acquire()
            except StoreError:
                raise
            except OSError as error:
                raise StoreUnwritable(f"cannot write {self._root}: {error}; choose a path that can be written") from error
            if not free:
                raise StoreError(f"{self._root} is open; close it everywhere before it is moved")
            yield
        finally:
            lock.release()


@interruptible
def _read_alone(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """Yield a connection that has the ledger file ``path`` for itself until the block ends.

    Raise ``StoreError`` if the file is open anywhere else, and ``StoreCorrupt`` if it is damaged.
    """
    try:
        with connected(path, isolation_level=None, timeout=_PATIENCE) as connection:
            try:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise StoreError(f"{path} is in use ({error}); close it everywhere before it is moved") from error
            _check_whole(connection, path)
            yield connection
            connection.execute("COMMIT")
    except FAILURES as error:
        explain(error, path)


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    lost = connection.execute("PRAGMA foreign_key_check").fetchone()
    if verdict != "ok" or lost is not None:
        why = verdict if lost is None else f"the row {lost[1]} of {lost[0]} belongs to no row of {lost[2]}"
        raise StoreCorrupt(f"{path} is damaged ({why}); nothing was moved. Repair it first: cascade-memory data doctor --fix")
