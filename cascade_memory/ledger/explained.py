"""Turns errors of SQLite and of the disk into the library's own errors, which say what to do."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

from cascade_memory.errors import CascadeError, StoreBusy, StoreCorrupt, StoreError, StoreUnwritable

FAILURES = (sqlite3.DatabaseError, OSError, UnicodeDecodeError)  # the last one if SQLite's own message is not UTF-8


def explain(error: Exception, path: Path | None) -> NoReturn:
    """Raise an error that says what to do, for one of the ``FAILURES``; an error of the library is raised unchanged."""
    if isinstance(error, (CascadeError, sqlite3.IntegrityError)):
        raise error
    if isinstance(error, sqlite3.OperationalError):
        raise _of_sqlite(str(error), path) from error
    if isinstance(error, OSError):
        if error.errno is None:
            raise error  # not of the system: the TimeoutError of an alarm, for example
        if error.errno == errno.ENOSPC:
            raise _no_room(path) from error
        raise StoreUnwritable(f"{path} cannot be written ({error.strerror}); check its permissions and its disk") from error
    raise StoreCorrupt(
        f"{path} is not a readable ledger ({error}); restore it from a backup, or move it away to start with an empty one"
    ) from error


@contextlib.contextmanager
def explained(path: Path | None) -> Generator[None, None, None]:
    """Turn errors of SQLite and of the disk into the library's own errors."""
    try:
        yield
    except FAILURES as error:
        explain(error, path)


def _of_sqlite(text: str, path: Path | None) -> StoreError:
    if "full" in text:
        return _no_room(path)
    if any(word in text for word in ("readonly", "unable to open", "permission", "I/O")):
        return StoreUnwritable(f"{path} cannot be written ({text}); check its permissions and its disk")
    if "decode" in text:
        return StoreCorrupt(f"{path} has a text that is not UTF-8 ({text}); mend it: cascade-memory data doctor --fix")
    if "integer overflow" in text:
        return StoreCorrupt(f"{path} has numbers that no row may have ({text}); mend it: cascade-memory data doctor --fix")
    if "locked" in text:
        return StoreBusy(f"{path} stayed locked by another process; check whether that process hangs")
    return StoreError(f"the ledger {path} failed: {text}")


def _no_room(path: Path | None) -> StoreUnwritable:
    return StoreUnwritable(f"no room left for {path}; free some space: nothing stored so far was lost")
