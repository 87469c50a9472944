"""Opens SQLite files that may come from somebody else: checks all files that SQLite would act on before it connects.

SQLite obeys the files beside a database before anything in the database itself can be read. A rollback journal may name a
"super-journal", which SQLite *deletes* wherever it is. The journal may also say that the database was larger, and SQLite then
enlarges it. Through a link, or a second name (a hard link), SQLite changes a file in another place. On a pipe, SQLite waits for
ever.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.domain.private_files import open_plain
from cascade_memory.errors import StoreCorrupt, StoreUnwritable

BESIDE = ("-journal", "-wal", "-shm")  # what SQLite keeps beside a database, and reads before the database
# A journal begins with this. It also ends with it if it names a super-journal, as only transactions on several databases do.
# The end of any other journal is a checksum with a random part, or, in one that was cut off, a piece of a page; there it
# cannot be a text of anybody, as these bytes are not UTF-8.
_MAGIC = bytes.fromhex("d9d505f920a163d7")
_HEADER, _TAIL = 28, 16
_LARGEST_PAGE = 65_536
_LENGTH = 0  # SQLITE_LIMIT_LENGTH


def connect(database: Path, option: str = "", **options: Any) -> sqlite3.Connection:
    """Connect to a database if all files that SQLite would act on are harmless; ``option`` is a parameter of SQLite's URIs.

    No code in the file can call functions with side effects, and SQLite checks each page that it reads.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "new.sqlite3"
    >>> connection = connect(place)
    >>> connection.execute("PRAGMA trusted_schema").fetchone()
    (0,)
    >>> connection.close()
    """
    check_files(database, reading=option in ("mode=ro", "immutable=1"))
    if option:
        connection = sqlite3.connect(f"{database.resolve().as_uri()}?{option}", uri=True, **options)
    else:
        connection = sqlite3.connect(database, **options)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
    except BaseException:
        connection.close()
        raise
    return connection


@interruptible
def connected(database: Path, option: str = "", **options: Any) -> Generator[sqlite3.Connection, None, None]:
    """Connect as ``connect`` does for the time of a block, and close the connection wherever an interrupt comes."""
    opened: list[sqlite3.Connection] = []
    try:
        opened.append(connect(database, option, **options))
        yield opened[0]
    finally:
        for connection in opened:
            connection.close()


@interruptible
def at_most(connection: sqlite3.Connection, most: int) -> Generator[None, None, None]:
    """Within the block, a statement that would read a value of more than ``most`` bytes fails ("string or blob too big").

    It fails before the value is in memory. Before Python 3.11, there is no limit.
    """
    set_limit: Callable[[int, int], int] | None = getattr(connection, "setlimit", None)
    if set_limit is None:
        yield
        return
    before = set_limit(_LENGTH, most)
    try:
        yield
    finally:
        set_limit(_LENGTH, before)


def check_files(database: Path, *, reading: bool = False) -> None:
    """Raise if a database, or a file that SQLite keeps beside it, would make SQLite touch anything else.

    ``reading``: the database is only read, and may have a second name, as in backups that share files.
    """
    main = _looked_at(database, may_be_shared=reading)
    for end in BESIDE:
        file = database.with_name(database.name + end)
        found = _looked_at(file)
        if found is None:
            continue
        if main is not None and hasattr(os, "geteuid") and found.st_uid not in (main.st_uid, os.geteuid(), 0):
            raise StoreCorrupt(
                f"{file} belongs to another user than {database.name}: somebody has put it there, and SQLite would change the "
                "database by it. Delete it, or restore a backup that you trust"
            )
        if end == "-journal":
            _check_journal(file, database)


def _looked_at(file: Path, *, may_be_shared: bool = False) -> os.stat_result | None:
    """Read the status of a file once, since a journal may go meanwhile; None if there is none, raise if it is unsafe."""
    try:
        found = file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode):
        raise StoreCorrupt(
            f"{file} is not a plain file but a link, a pipe, a device or a folder: move it away, or restore the memory "
            "from a backup. To keep a memory in another place, open it by the path of that folder"
        )
    if found.st_nlink > 1 and not may_be_shared:
        raise StoreCorrupt(
            f"{file} is a hard link: it has a second name elsewhere, and whoever writes here changes that file as well. "
            "Replace it by a copy of its own, or restore the memory from a backup"
        )
    return found


def _check_journal(journal: Path, database: Path) -> None:
    """Raise if a journal would make SQLite delete another file, or make the database far larger."""
    begins, ends, _ = _read(journal)
    if ends.endswith(_MAGIC):
        raise StoreCorrupt(
            f"{journal} names another file, which SQLite would delete. This library never writes such a journal: somebody has "
            "put it there. Delete the whole folder, or restore a backup that you trust over it"
        )
    if not begins.startswith(_MAGIC):
        return
    # What a transaction changes stands in its journal before the database is cut off: together they were never smaller. The
    # transaction may be going on, so the database is measured between two looks at the journal.
    size = os.stat(database).st_size if database.exists() else 0
    still, _, length = _read(journal)
    pages, page_size = (int.from_bytes(begins[at : at + 4], "big") for at in (16, 24))
    if still == begins and pages * (page_size or _LARGEST_PAGE) > size + length:  # with 0, SQLite takes the database's own
        raise StoreCorrupt(
            f"{journal} says that the database was far larger than it can have been, and SQLite would make it so. Somebody has "
            "changed it: restore a backup that you trust"
        )


def _read(journal: Path) -> tuple[bytes, bytes, int]:
    """Return the first and last bytes of a journal, and its length; nothing if it has gone meanwhile."""
    try:
        with open_plain(journal) as file:
            begins, length = file.read(_HEADER), file.seek(0, os.SEEK_END)
            file.seek(max(0, length - _TAIL))
            return begins, file.read(_TAIL) if length >= _TAIL else b"", length
    except FileNotFoundError:
        return b"", b"", 0
    except OSError as error:
        raise StoreUnwritable(f"cannot read {journal} ({error.strerror or error}); check its permissions") from error
