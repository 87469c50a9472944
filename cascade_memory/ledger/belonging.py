"""Checks that an open ledger is still the file of its folder, with the embedder and content that it was opened with.

SQLite goes on writing to a file that was deleted or replaced: everything that it acknowledges from then on is lost.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from cascade_memory.domain.plain_json import parsed
from cascade_memory.domain.private_files import create_file
from cascade_memory.errors import EncoderMismatch, StoreError, StoreReplaced
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.rows import SET_FACT

EMBEDDER, _GENERATION = "embedder", "generation"  # names of facts in the table ``meta``
_FACTS = f"""SELECT (SELECT value FROM meta WHERE key = '{EMBEDDER}'), (SELECT value FROM meta WHERE key = '{_GENERATION}')"""
_UNCHANGED = f"""(SELECT value FROM meta WHERE key = '{_GENERATION}') IS NOT DISTINCT FROM ?
  AND (? = '' OR coalesce((SELECT value FROM meta WHERE key = '{EMBEDDER}') = ?, true))"""
_Identity = tuple[int, int]  # device and inode of a file


class Requires(Connection, Protocol):
    """A connection to a server that checks conditions inside the transaction."""

    def require(self, condition: str, parameters: Sequence[Any]) -> None:
        """Let the transaction fail unless a condition holds."""
        ...


class Belonging:
    """Remembers which files were opened and which facts they held, and refuses to work once either has changed.

    >>> Belonging(None).check()  # nobody can replace a ledger in RAM
    """

    def __init__(self, path: Path | None, place: str | None = None) -> None:
        self._place = place or str(path)  # for people
        self.path = None if path is None else os.path.abspath(path)  # absolute, as in SQLite: the working directory may change
        # If the path is a link, SQLite puts the log beside the link's target.
        self._log = None if self.path is None else os.path.realpath(self.path) + "-wal"
        # The log is unknown if the file was opened for reading only.
        self._files: tuple[_Identity, _Identity | None] | None = None
        self._embedder: tuple[str, str] | None = None
        self._generation: str | None = None
        self._unclaimed = False
        self._refusal: StoreError | None = None

    # -- the files ---------------------------------------------------------------------------------------------------

    def before_opening(self) -> _Identity | None:
        """Create the file if it does not exist, so that SQLite opens this very file; return its identity."""
        if self.path is None:
            return None
        # Only if it does not exist: closing a file that SQLite has open would release SQLite's locks on it.
        create_file(Path(self.path))
        return _identity(self.path)

    def opened(self, before: _Identity | None, connection: Connection) -> bool:
        """Remember the opened files; return False if the file was replaced since ``before_opening``, which returned ``before``.

        It is then unclear whether the old file is open or the new one.
        """
        if self.path is None or self._log is None:
            self.adopt(connection)
            return True
        if _identity(self.path) != before:
            return False
        self._remember(connection, _identity(self._log))
        return True

    def opened_for_reading(self, connection: Connection) -> None:
        """Remember a ledger that can only be read for now: once it can be written again, it must still be the same ledger."""
        self._remember(connection, None)

    def _remember(self, connection: Connection, log: _Identity | None) -> None:
        """Remember the files; raise if they differ from those opened before, or if the ledger was replaced since."""
        assert self.path is not None
        file, known, generation = _identity(self.path), self._files, self._generation
        self.adopt(connection)
        if known is not None and (file != known[0] or self._generation != generation):
            self._refuse(self._replaced())
        self._files = (file, log)

    def _replaced(self) -> StoreReplaced:
        return StoreReplaced(
            f"{self.path} (or its -wal file) was replaced, moved or deleted while this memory was open: what was just written "
            "is not in the folder, or may not stay there. Close the memory, and open it again"
        )

    def check(self, *, log: bool = True) -> None:
        """Raise if a write now, or one made a moment ago, would not be in the folder; takes microseconds.

        ``log``: also check the write-ahead log, which holds the newest acknowledged writes.
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

    # -- the folder's facts ------------------------------------------------------------------------------------------

    def bind(self, connection: Connection, embedder: str) -> None:
        """Declare the embedder of the folder's vectors, and remember the present generation of the ledger.

        The generation is an id that changes if the content or the tables of the ledger are replaced.
        """
        self.adopt(connection)
        self._embedder = (EMBEDDER, embedder)

    def require_facts(self, connection: Requires, *, claims: bool) -> None:
        """Let a transaction fail on the server if ``check_facts`` would raise there; ``claims`` means the same as there."""
        self._refuse_again()
        embedder = "" if self._embedder is None else self._embedder[1]
        if claims and self._embedder is not None:
            connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", self._embedder)
        connection.require(_UNCHANGED, (self._generation, embedder, embedder))

    def check_facts(self, connection: Connection, *, claims: bool = False) -> None:
        """Raise, inside a transaction that is about to write, if the folder was reindexed or restored since it was opened.

        ``claims``: the transaction writes vectors, so the embedder is recorded.
        """
        self._refuse_again()
        noted, generation = connection.execute(_FACTS).fetchone()
        if self._embedder is not None and noted not in (None, self._embedder[1]):
            stored, own = _name_of(noted), _name_of(self._embedder[1])
            self._refuse(
                EncoderMismatch(
                    f"{self._place} has vectors of the embedder {stored!r} now, but this memory was opened with {own!r}: "
                    f"nothing was stored. Close the memory, and open it again with {stored!r}"
                )
            )
        if generation != self._generation:
            self._refuse(
                StoreReplaced(
                    f"{self._place} was restored, reindexed, or upgraded by a newer version of this library, while this memory "
                    "was open: nothing was stored. Close the memory, and open it again"
                )
            )
        self._unclaimed = noted is None
        if claims:
            self.claim(connection)

    def claim(self, connection: Connection) -> None:
        """Record the embedder in the transaction that writes the first vector: if two processes try, only one succeeds."""
        if self._unclaimed and self._embedder is not None:
            connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", self._embedder)

    def adopt(self, connection: Connection) -> None:
        """Remember the present generation of the ledger (see ``bind``): later checks compare with it.

        If this memory has changed the generation, all others that have the folder open must open it again.
        """
        _, self._generation = connection.execute(_FACTS).fetchone()

    def _refuse(self, error: StoreError) -> None:
        self._refusal = error
        raise error

    def _refuse_again(self) -> None:
        if self._refusal is not None:
            raise type(self._refusal)(*self._refusal.args)  # a new exception each time: an exception collects tracebacks


def _name_of(noted: object) -> str:
    """Return the embedder named in a note, as far as the note can be read."""
    match parsed(noted):
        case [str(name), *_]:
            return name
        case _:
            return str(noted)[:80]


def begin_generation(connection: Connection) -> None:
    """Tell every process that has this ledger open that its content or its tables are about to be replaced."""
    connection.execute(SET_FACT, (_GENERATION, uuid.uuid4().hex))


def _identity(path: str) -> _Identity:
    found = os.stat(path)
    return found.st_dev, found.st_ino
