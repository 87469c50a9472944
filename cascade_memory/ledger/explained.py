"""Errors of SQLite and of the disk as ours, with what to do."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Generator
from pathlib import Path

from cascade_memory.errors import StoreBusy, StoreCorrupt, StoreError, StoreUnwritable


@contextlib.contextmanager
def explained(path: Path | None) -> Generator[None, None, None]:
    """Turn errors of SQLite and of the disk into ours, with what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if "full" in text:
            raise _no_room(path) from error
        if any(word in text for word in ("readonly", "unable to open", "permission", "I/O")):
            raise StoreUnwritable(f"{path} cannot be written ({text}); check its permissions and its disk") from error
        if "locked" in text:
            raise StoreBusy(f"{path} stayed locked by another process; is one stuck?") from error
        raise StoreError(f"the ledger {path} failed: {text}") from error
    except StoreError:
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _no_room(path) from error
        raise StoreUnwritable(f"{path} cannot be written ({error.strerror}); check its permissions and its disk") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter where SQLite's own message is no text
        if isinstance(error, sqlite3.IntegrityError):
            raise
        raise StoreCorrupt(
            f"{path} is no readable ledger ({error}); restore it from a backup, or move it away to start afresh"
        ) from error


def _no_room(path: Path | None) -> StoreUnwritable:
    return StoreUnwritable(f"no room left for {path}; free some space: nothing stored so far was lost")
