"""Moves a memory from a folder into a database, or back.

Nobody else has the folder's ledger open, or can open it meanwhile.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from cascade_memory.assembly import folder, opened
from cascade_memory.assembly.folder import Folder
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.assembly.place import place_of
from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.private_files import make_folder
from cascade_memory.domain.sqlite_files import BESIDE, connected
from cascade_memory.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ledger.copying import Copying, Row
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.explained import FAILURES, explain
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.memory.progress import progress_bar
from cascade_memory.ports.snapshots import Snapshot, Snapshots
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


def move(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, while_open: bool = False, progress: bool | None = None
) -> dict[str, int]:
    """Copy a memory from a folder into a PostgreSQL database, or back; return the number of rows of each table.

    All rows keep their keys. They are read in one state and written in one transaction, and compared before it is committed.
    What the ranker learned is copied as well. The source stays as it is. Chroma is filled again when the target is opened.

    Args:
        source: The folder or the URL of the memory. It must not be open anywhere: later writes would not be in the copy.
        target: A URL of a database, or a folder, that holds no memory yet.
        while_open: Move a database although others have it open. They cannot write while it is copied.
        progress: Show a progress bar; None: only on a terminal.
    """
    one, other = _end(source), _end(target)
    if isinstance(one, MovedFolder) == isinstance(other, MovedFolder):
        raise InvalidInput(
            "a memory is moved from a folder to a URL that begins with postgresql://, or back; "
            "use backup and restore between folders, and pg_dump between databases"
        )
    with one.reading(while_open=while_open) as from_, other.writing() as to:
        moved = Copying(from_, to, (one.place, other.place), _Shown(progress)).run()
        learned = other.learned(to, anew=True)
        for snapshot in one.learned(from_).every():
            _copy(snapshot, learned)
        one.check_alone()
        return moved


class _End(Protocol):
    @property
    def place(self) -> str: ...
    def reading(self, *, while_open: bool) -> AbstractContextManager[Connection]: ...
    def check_alone(self) -> None: ...
    def writing(self) -> AbstractContextManager[Connection]: ...
    def learned(self, connection: Connection, *, anew: bool = False) -> Snapshots: ...


def _end(where: str | os.PathLike[str]) -> _End:
    place = place_of(where)  # or it raises, and says what is wrong or missing
    if isinstance(place, Folder):
        return MovedFolder(place.path)
    from cascade_memory.assembly.moved_database import MovedDatabase

    return MovedDatabase(str(where).strip())


def _copy(snapshot: Snapshot, target: Snapshots) -> None:
    weights = snapshot.weights
    target.save(snapshot, None if weights is None else lambda path: _copy_file(weights, path))


def _copy_file(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


class _Shown:
    """Shows a progress bar for each table."""

    def __init__(self, show: bool | None) -> None:
        self._show = show

    def __call__(self, pages: Iterable[list[Row]], what: str, rows: int) -> Iterator[list[Row]]:
        """Yield the pages; the bar counts their rows."""
        bar: Any = progress_bar(range(rows), what, show=self._show)
        for page in pages:
            yield page
            if hasattr(bar, "update"):
                bar.update(len(page))
        if hasattr(bar, "close"):
            bar.close()
