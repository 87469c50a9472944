"""Opening a SQLite file that somebody else may have made."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from cascade_memory.domain.private_files import create_file, is_plain, make_private
from cascade_memory.errors import StoreCorrupt, StoreUnwritable

_BESIDE = ("", "-wal", "-shm", "-journal")


def harden(connection: sqlite3.Connection) -> None:
    """Let nothing in the file call functions that reach beyond it, and let a page be checked before it is read."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def check_plain(ledger: Path) -> None:
    """Refuse a ledger, or a file that SQLite keeps beside it, that is a link, a pipe or a device.

    Through a link SQLite would write over a file that stands somewhere else; a pipe would keep it waiting for ever.
    """
    for end in _BESIDE:
        file = ledger.with_name(ledger.name + end)
        if (file.exists() or file.is_symlink()) and not is_plain(file):
            raise StoreCorrupt(
                f"{file} is no file, but a link, a pipe or a folder: move it away, or restore the memory from a backup. "
                "To keep a memory elsewhere, name that folder"
            )


def private_ledger(ledger: Path) -> None:
    """Make the file of a new ledger for its owner alone; an older one's, and what stands beside it, is made so."""
    check_plain(ledger)
    try:
        if not ledger.exists():
            create_file(ledger)
    except OSError as error:
        raise StoreUnwritable(f"{ledger} cannot be written ({error}); check its permissions and its disk") from error
    for end in _BESIDE:  # SQLite gives the others the mode of the first
        make_private(ledger.with_name(ledger.name + end))
