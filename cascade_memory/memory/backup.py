"""A copy of a memory, taken while it is at work."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cascade_memory.errors import InvalidInput, StoreUnwritable
from cascade_memory.memory.engine import Engine

LEDGER, SNAPSHOTS = "ledger.sqlite3", "snapshots"


def backup(engine: Engine, target: str | os.PathLike[str]) -> dict[str, int]:
    """Copy the ledger, as it is at one moment, and what was learned into a new folder; return what the copy holds.

    The folder appears under its name when it is complete, checked and on disk; before, and after a failure, there is none.
    """
    place = Path(target).expanduser()
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InvalidInput(f"{place} exists already; name a new folder, so that no earlier backup is lost")
    unfinished = place.with_name(place.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        learned = engine.parts.snapshots.path
        # Before the ledger: what was learned from lines that the copy does not have could not be used.
        if learned is not None and learned.is_dir():
            shutil.copytree(learned, unfinished / SNAPSHOTS, ignore=shutil.ignore_patterns("*.part"))
        held = engine.parts.ledger.copy_to(unfinished / LEDGER)
        for file in [*unfinished.rglob("*"), unfinished]:
            sync_to_disk(file)
        if place.exists():
            place.rmdir()
        unfinished.rename(place)
        sync_to_disk(place.parent)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise StoreUnwritable(f"cannot write the backup {place}: {error}; the memory itself is untouched") from error
    return held


def sync_to_disk(path: Path) -> None:
    """Make a file, or the entries of a folder, survive a power cut; a folder only where the system can."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
