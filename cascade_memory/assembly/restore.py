"""Restores a memory from a backup."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import time
from pathlib import Path

from cascade_memory.assembly import folder, opened
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.domain.private_files import make_folder, make_private
from cascade_memory.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ledger.copying import put_copy, verified
from cascade_memory.ledger.untrusted import check_plain
from cascade_memory.memory.backup import sync_to_disk
from cascade_memory.snapshots import copy_snapshots


def restore(backup: str | os.PathLike[str], path: str | os.PathLike[str], *, replace: bool = False) -> dict[str, int]:
    """Restore a backup into a folder; return what it holds. Nothing is removed before the backup has been read.

    Args:
        backup: The folder that ``CascadeMemory.backup`` wrote.
        path: The folder of the memory; it must not be open anywhere.
        replace: Replace an existing memory. A damaged ledger is kept beside the restored one.

    >>> import tempfile
    >>> from cascade_memory import CascadeMemory
    >>> place = tempfile.mkdtemp()
    >>> with CascadeMemory(embedder="hashing") as memory:
    ...     _ = memory.add("reset a password", "press reset")
    ...     _ = memory.backup(f"{place}/backup")
    >>> restore(f"{place}/backup", f"{place}/memory")
    {'cases': 1, 'episodes': 0, 'outcomes': 0}
    """
    source, root = Path(backup).expanduser(), Path(path).expanduser()
    if not (source / folder.LEDGER).is_file():
        raise InvalidInput(f"there is no backup in {str(backup)!r}")
    target = root / folder.LEDGER
    if target.exists() and not replace:
        raise InvalidInput(
            f"there is a memory in {str(path)!r} already; "
            "replace=True (on the command line --replace) replaces it by the backup"
        )
    for place in (source, root):
        check_plain(place / folder.LEDGER)
    held = verified(source / folder.LEDGER)
    lock = OwnerLock(root / folder.LOCK)
    try:
        make_folder(root)
        if opened.is_open(root) or not lock.try_acquire():
            raise StoreError(f"{root} is open; close it everywhere before it is restored")  # noqa: TRY301 - see below
        try:
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
    sound = _let_go_of(target)
    _remove(root / folder.SNAPSHOTS)  # they belong to the old ledger; the learned state can be computed again
    if sound:
        # SQLite copies under its own locks, completely or not at all. Replacing the file would break a process that just
        # opened it.
        put_copy(source / folder.LEDGER, target)
        make_private(target)
    else:
        unfinished.unlink(missing_ok=True)
        put_copy(source / folder.LEDGER, unfinished)
        if verified(unfinished) != held:
            raise StoreCorrupt(
                f"{unfinished} differs from the backup it was copied from; nothing was replaced. Repeat the restore"
            )
        if target.exists():
            raise StoreError(f"another process has made a new memory in {root} meanwhile; close it, and repeat the restore")
        sync_to_disk(unfinished)
        unfinished.rename(target)
    sync_to_disk(root)
    _remove(root / folder.CHROMA)
    copy_snapshots(source / folder.SNAPSHOTS, root / folder.SNAPSHOTS)


def _remove(place: Path) -> None:
    """Remove a folder, or the link or file at its path."""
    if place.is_symlink() or place.is_file():
        place.unlink()
    shutil.rmtree(place, ignore_errors=True)


def _let_go_of(ledger: Path) -> bool:
    """Check that no process has the old ledger open; return whether it is sound, so that it can be overwritten in place.

    A damaged ledger is moved aside, so that somebody can still examine it.
    """
    if not ledger.exists():
        return False
    try:
        with contextlib.closing(sqlite3.connect(ledger, isolation_level=None, timeout=2)) as connection:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = DELETE")
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok":
                return True
    except sqlite3.OperationalError as error:
        raise StoreError(f"{ledger} is in use ({error}); close it everywhere before it is restored") from error
    except sqlite3.DatabaseError:
        pass
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for file in ledger.parent.glob(f"{ledger.name}*"):
        if file.name in (ledger.name, f"{ledger.name}-wal", f"{ledger.name}-shm", f"{ledger.name}-journal"):
            file.rename(kept := file.with_name(f"{file.name}.damaged-{stamp}"))
            make_private(kept)
    return False
