"""Restores a memory from a backup."""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from pathlib import Path

from cascade_memory.assembly import folder, opened
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.domain.private_files import has_one_name, make_folder, make_private
from cascade_memory.domain.sqlite_files import BESIDE, connected
from cascade_memory.domain.validation import check_path
from cascade_memory.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ledger.archive import put_copy, verified
from cascade_memory.ledger.structure import check_structure
from cascade_memory.memory.backup import sync_to_disk
from cascade_memory.snapshots import copy_snapshots
from cascade_memory.stores.folder_files import remove


def restore(backup: str | os.PathLike[str], path: str | os.PathLike[str], *, replace: bool = False) -> dict[str, int]:
    """Restore a backup into a folder; return counts of its content. Nothing is removed before the backup has been read.

    Args:
        backup: The folder that ``CascadeMemory.backup`` wrote.
        path: The folder of the memory; it must not be open anywhere.
        replace: Replace an existing memory. A damaged ledger is kept beside the restored one.

    >>> import tempfile
    >>> from cascade_memory import CascadeMemory
    >>> place = tempfile.mkdtemp()
    >>> with CascadeMemory(embedder="hashing") as memory:
    ...     _ = memory.add("reset a password", "press reset")
    ...     _ = memory.data.backup(f"{place}/backup")
    >>> restore(f"{place}/backup", f"{place}/memory")
    {'cases': 1, 'episodes': 0, 'outcomes': 0}
    """
    source, root = check_path(backup, "backup"), check_path(path, "path")
    if not (source / folder.LEDGER).is_file():
        raise InvalidInput(f"there is no backup in {str(backup)!r}")
    target = root / folder.LEDGER
    if os.path.lexists(target) and not replace:
        raise InvalidInput(
            f"there is a memory in {str(path)!r} already; "
            "replace=True (on the command line --replace) replaces it by the backup"
        )
    held = verified(source / folder.LEDGER)
    lock = OwnerLock(root / folder.LOCK)
    try:
        make_folder(root)
        if os.path.lexists(lock_file := root / folder.LOCK) and not has_one_name(lock_file.lstat()):
            remove(lock_file)  # nobody holds it: such a file is locked by no process of this library
        try:
            if opened.is_open(root) or not lock.try_acquire():
                raise StoreError(f"{root} is open; close it everywhere before it is restored")
            _put_in_place(source, root, held)
        finally:
            lock.release()
    except StoreError:
        raise
    except OSError as error:
        raise StoreUnwritable(f"cannot restore to {root}: {error}; repeat it when there is enough space") from error
    return held


def _put_in_place(source: Path, root: Path, held: dict[str, int]) -> None:
    target, unfinished = root / folder.LEDGER, root / folder.RESTORING
    if _let_go_of(target):
        remove(root / folder.SNAPSHOTS)  # they belong to the old ledger; the learned state can be computed again
        # SQLite copies under its own locks, completely or not at all. Replacing the file would break a process that just
        # opened it.
        put_copy(source / folder.LEDGER, target)
        make_private(target)
    else:
        for end in ("", *BESIDE):
            remove(unfinished.with_name(unfinished.name + end))
        before = _identity(target)
        put_copy(source / folder.LEDGER, unfinished)
        if verified(unfinished) != held:
            raise StoreCorrupt(
                f"{unfinished} differs from the backup it was copied from; nothing was replaced. Repeat the restore"
            )
        if _identity(target) != before:
            raise StoreError(f"another process has made a new memory in {root} meanwhile; close it, and repeat the restore")
        sync_to_disk(unfinished)
        _move_aside(target)
        remove(root / folder.SNAPSHOTS)
        unfinished.rename(target)
    sync_to_disk(root)
    remove(root / folder.CHROMA)
    copy_snapshots(source / folder.SNAPSHOTS, root / folder.SNAPSHOTS)


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _let_go_of(ledger: Path) -> bool:
    """Check that no process has the old ledger open; return whether it is sound, so that it can be overwritten in place.

    A ledger that would make SQLite touch other files is not opened with SQLite: it is replaced unread.
    """
    if not os.path.lexists(ledger):
        return False
    try:
        with connected(ledger, isolation_level=None, timeout=2) as connection:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            check_structure(connection, version, str(ledger))  # first: what is in it might run while it is checked
            connection.execute("PRAGMA journal_mode = DELETE")
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.OperationalError as error:
        raise StoreError(f"{ledger} is in use ({error}); close it everywhere before it is restored") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError, StoreCorrupt):
        return False


def _move_aside(ledger: Path) -> None:
    """Keep a damaged ledger, and what lies beside it, under other names, so that somebody can still examine it."""
    stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"
    for end in ("", *BESIDE):
        file = ledger.with_name(ledger.name + end)
        if os.path.lexists(file):
            file.rename(kept := file.with_name(f"{file.name}.damaged-{stamp}"))
            make_private(kept)
