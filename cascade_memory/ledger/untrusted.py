"""Precautions for opening a SQLite file that may come from somebody else."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

from cascade_memory.domain.private_files import create_file, make_private
from cascade_memory.errors import StoreCorrupt, StoreUnwritable

_BESIDE = ("", "-wal", "-shm", "-journal")


def harden(connection: sqlite3.Connection) -> None:
    """Forbid code in the file to call functions with side effects, and make SQLite check each page that it reads."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def check_plain(ledger: Path) -> None:
    """Raise if the ledger, or a file that SQLite keeps beside it, is not a plain file.

    Through a link, SQLite would overwrite a file in another place. On a pipe, it would wait for ever.
    """
    for end in _BESIDE:
        file = ledger.with_name(ledger.name + end)
        try:
            mode = file.lstat().st_mode  # one look: a journal of another process comes and goes meanwhile
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not stat.S_ISREG(mode):
            raise StoreCorrupt(
                f"{file} is not a plain file but a link, a pipe, a device or a folder: move it away, or restore the memory "
                "from a backup. To keep a memory in another place, open it by the path of that folder"
            )


def private_ledger(ledger: Path) -> None:
    """Let only the owner read and write the ledger and the files beside it; create the ledger if it does not exist."""
    check_plain(ledger)
    try:
        if not ledger.exists():
            create_file(ledger)
    except OSError as error:
        raise StoreUnwritable(f"{ledger} cannot be written ({error}); check its permissions and its disk") from error
    for end in _BESIDE:  # files that SQLite creates later get the permissions of the ledger
        make_private(ledger.with_name(ledger.name + end))
