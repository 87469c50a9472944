"""Backup: copies a memory while it is in use."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from pathlib import Path

from cascade_memory.domain.private_files import FOLDER, make_folder
from cascade_memory.domain.validation import check_path
from cascade_memory.engine.engine import Engine
from cascade_memory.errors import InvalidInput, StoreCorrupt, StoreUnwritable
from cascade_memory.snapshots import copy_snapshots

LEDGER, SNAPSHOTS = "ledger.sqlite3", "snapshots"


def backup(engine: Engine, target: str | os.PathLike[str]) -> dict[str, int]:
    """Copy the ledger as it is at one moment, and the learned state, into a new folder; return counts of what the copy holds.

    The folder gets its name only once it is complete, checked and on disk. Before that, and after a failure, it does not exist.
    """
    place = check_path(target, "target").resolve()
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise _exists_error(place)
    # A unique name: a folder may exist under any fixed name, or another process may be making the same backup right now.
    unfinished = place.with_name(f"{place.name}.{uuid.uuid4().hex[:8]}.unfinished")
    try:
        make_folder(place.parent)
        unfinished.mkdir(mode=FOLDER)
        learned = engine.parts.snapshots.path
        # Snapshots are copied before the ledger: one that has learned from log lines that the copy lacks could not be used.
        if learned is not None:
            copy_snapshots(learned, unfinished / SNAPSHOTS)
        held = engine.parts.ledger.archive.copy_to(unfinished / LEDGER)
        for file in [*unfinished.rglob("*"), unfinished]:
            sync_to_disk(file)
        _name(unfinished, place)
        sync_to_disk(place.parent)
    except OSError as error:
        if isinstance(error, StoreCorrupt):
            hint = "cascade-memory data doctor shows more about the damage, and can repair some of it"
            raise StoreCorrupt(f"{error}: {hint}") from error
        raise StoreUnwritable(f"cannot write the backup {place}: {error}; the memory itself is untouched") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return held


def _name(unfinished: Path, place: Path) -> None:
    """Give a finished backup its name in one step: this replaces an empty folder, but no other."""
    if os.name == "nt" and place.is_dir():
        with contextlib.suppress(OSError):
            place.rmdir()
    try:
        unfinished.rename(place)
    except OSError as error:
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise _exists_error(place) from error
        raise


def _exists_error(place: Path) -> InvalidInput:
    return InvalidInput(f"{place} exists already; choose a new folder, so that no earlier backup is lost")


def sync_to_disk(path: Path) -> None:
    """Make a file, or the entries of a folder, survive a power cut; for a folder, only if the system supports it."""
    is_windows = os.name == "nt"
    if is_windows and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if is_windows else os.O_RDONLY)  # Windows syncs only what may be written
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
