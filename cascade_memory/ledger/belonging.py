"""Whether an open ledger is still the one of its folder, and still what it was when it was opened.

SQLite goes on writing into a file that was deleted or replaced: nothing that it acknowledges then is anywhere afterwards.
"""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from pathlib import Path

from cascade_memory.domain.private_files import create_file
from cascade_memory.errors import EncoderMismatch, StoreError, StoreReplaced

EMBEDDER, _GENERATION = "embedder", "generation"  # in the table of small facts
_FACTS = f"""SELECT (SELECT value FROM meta WHERE key = '{EMBEDDER}'), (SELECT value FROM meta WHERE key = '{_GENERATION}')"""
_Identity = tuple[int, int]  # device and number of a file


class Belonging:
    """Remembers which files were opened and what the folder said of itself, and refuses once either has changed.

    >>> Belonging(None).check()  # a ledger in RAM is nobody else's
    """

    def __init__(self, path: Path | None) -> None:
        self.path = None if path is None else os.path.abspath(path)  # as SQLite does: the working directory may change
        # Beside the file that is meant, where the path is a link: that is where SQLite puts it.
        self._log = None if self.path is None else os.path.realpath(self.path) + "-wal"
        self._files: tuple[_Identity, _Identity | None] | None = None  # the log is not known of what was opened for reading
        self._embedder: tuple[str, str] | None = None
        self._generation: str | None = None
        self._unclaimed = False
        self._refusal: StoreError | None = None

    # -- the files ---------------------------------------------------------------------------------------------------

    def before_opening(self) -> _Identity | None:
        """Make sure that there is a file, so that SQLite opens that one, and return which it is."""
        if self.path is None:
            return None
        # Only where there is none: to close a file that SQLite has open would take away its locks.
        create_file(Path(self.path))
        return _identity(self.path)

    def opened(self, before: _Identity | None, connection: sqlite3.Connection) -> bool:
        """Remember what was opened; return False if the file was replaced meanwhile, so that nobody knows which one it is."""
        if self.path is None or self._log is None:
            self._read_facts(connection)
            return True
        if _identity(self.path) != before:
            return False
        self._remember(connection, _identity(self._log))
        return True

    def opened_for_reading(self, connection: sqlite3.Connection) -> None:
        """Remember what can only be read for now: when it can be written again, it must still be the same ledger."""
        self._remember(connection, None)

    def _remember(self, connection: sqlite3.Connection, log: _Identity | None) -> None:
        """Remember the files; refuse others than those that were opened before, and a ledger that was replaced since."""
        assert self.path is not None
        file, known, generation = _identity(self.path), self._files, self._generation
        self._read_facts(connection)
        if known is not None and (file != known[0] or self._generation != generation):
            self._refuse(self._replaced())
        self._files = (file, log)

    def _replaced(self) -> StoreReplaced:
        return StoreReplaced(
            f"{self.path} was replaced, moved or deleted (or its -wal was) while this memory was open: what was just "
            "written is not in the folder, or may not stay there. Close the memory, and open it again"
        )

    def check(self, *, log: bool = True) -> None:
        """Raise if what is written now, or was written a moment ago, is not in the folder; microseconds.

        ``log``: look at the write-ahead log as well, in which what is acknowledged stands.
        """
        self._refuse_again()
        if self._files is None or self.path is None or self._log is None:
            return
        try:
            file, its_log = self._files
            there = _identity(self.path) == file and (not log or its_log is None or _identity(self._log) == its_log)
        except OSError:
            there = False
        if not there:
            self._refuse(self._replaced())

    # -- what the folder says of itself ------------------------------------------------------------------------------

    def bind(self, connection: sqlite3.Connection, embedder: str) -> None:
        """Expect from now on that the folder's vectors are of this embedder, and that nobody replaces everything."""
        self._read_facts(connection)
        self._embedder = (EMBEDDER, embedder)

    def check_facts(self, connection: sqlite3.Connection, *, claims: bool = False) -> None:
        """Raise, inside a transaction that is about to write, if the folder was embedded anew or restored since.

        ``claims``: it brings vectors, so that the embedder is noted.
        """
        self._refuse_again()
        noted, generation = connection.execute(_FACTS).fetchone()
        if self._embedder is not None and noted not in (None, self._embedder[1]):
            theirs, ours = _name_of(noted), _name_of(self._embedder[1])
            self._refuse(
                EncoderMismatch(
                    f"{self.path} has vectors of the embedder {theirs!r} now, this memory was opened with {ours!r}: nothing "
                    "was stored. Close the memory, and open it again with the former"
                )
            )
        if generation != self._generation:
            self._refuse(
                StoreReplaced(
                    f"{self.path} was restored or embedded anew while this memory was open: nothing was stored. "
                    "Close the memory, and open it again"
                )
            )
        self._unclaimed = noted is None
        if claims:
            self.claim(connection)

    def claim(self, connection: sqlite3.Connection) -> None:
        """Note the embedder with the first vector, in the same transaction: of two at once, one wins."""
        if self._unclaimed and self._embedder is not None:
            connection.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", self._embedder)

    def _read_facts(self, connection: sqlite3.Connection) -> None:
        _, self._generation = connection.execute(_FACTS).fetchone()

    def _refuse(self, error: StoreError) -> None:
        self._refusal = error
        raise error

    def _refuse_again(self) -> None:
        if self._refusal is not None:
            raise type(self._refusal)(*self._refusal.args)  # a new one: each collects where it was raised


def _name_of(noted: object) -> str:
    """Return the embedder of a note, as far as it can be read."""
    try:
        return str(json.loads(str(noted))[0])
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return str(noted)[:80]


def begin_generation(connection: sqlite3.Connection) -> None:
    """Tell whoever has this ledger open that everything in it is about to be replaced."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_GENERATION, uuid.uuid4().hex))


def _identity(path: str) -> _Identity:
    found = os.stat(path)
    return found.st_dev, found.st_ino
