"""Moves a memory from a folder into a database, or back."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, cast

from cascade_memory.assembly import folder
from cascade_memory.assembly.owner_lock import OwnerLock
from cascade_memory.domain.private_files import make_folder
from cascade_memory.errors import InvalidInput, StoreError, StoreUnwritable
from cascade_memory.lazy import load
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.moving.alone import read_alone
from cascade_memory.ledger.moving.copying import Copying
from cascade_memory.ledger.moving.pages import Row
from cascade_memory.ledger.sqlite import SQLiteLedger
from cascade_memory.memory.progress import progress_bar

_URL = re.compile(r"\s*postgres(ql)?://")


def move(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, while_open: bool = False, progress: bool | None = None
) -> dict[str, int]:
    """Copy a memory from a folder into a PostgreSQL database, or back; return the number of rows of each table.

    All rows keep their keys. They are read in one state and written in one transaction, and compared before it is committed.
    The source stays as it is. What was learned is learned again from the copied rows, and Chroma is filled again.

    Args:
        source: The folder or the URL of the memory. It must not be open anywhere: later writes would not be in the copy.
        target: A URL of a database, or a folder, that holds no memory yet.
        while_open: Move a database although others have it open. They cannot write while it is copied.
        progress: Show a progress bar; None: only on a terminal.
    """
    ends = _end(source), _end(target)
    if isinstance(ends[0], _MovedFolder) == isinstance(ends[1], _MovedFolder):
        raise InvalidInput(
            "a memory is moved from a folder to a URL that begins with postgresql://, or back; "
            "use backup and restore between folders, and pg_dump between databases"
        )
    with ends[0].reading(while_open=while_open) as from_, ends[1].writing() as to:
        moved = Copying(from_, to, (ends[0].place, ends[1].place), _Shown(progress)).run()
        ends[0].check_alone()
        return moved


class _End(Protocol):
    place: str

    def reading(self, *, while_open: bool) -> contextlib.AbstractContextManager[Connection]: ...
    def check_alone(self) -> None: ...
    def writing(self) -> contextlib.AbstractContextManager[Connection]: ...


def _end(place: str | os.PathLike[str]) -> _End:
    if not isinstance(place, str) or not _URL.match(place):
        return _MovedFolder(Path(place).expanduser())
    remedy = 'which comes with the extra "postgres": pip install "cascade-memory[postgres]"'
    optional = ("psycopg", "psycopg_pool")
    database = load(
        "cascade_memory.ledger.postgres", "MovedDatabase", {"MovedDatabase": "moving"}, optional=optional, remedy=remedy
    )
    return cast("_End", database(place.strip()))


class _Shown:
    """Shows a progress bar for each table."""

    def __init__(self, show: bool | None) -> None:
        self._show = show

    def __call__(self, pages: Iterable[list[Row]], what: str, rows: int) -> Iterator[list[Row]]:
        """Yield the pages; the bar counts their rows."""
        bar: Any = progress_bar(range(rows), what, show=self._show)
        for page in pages:
            yield page
            if hasattr(bar, "update"):
                bar.update(len(page))
        if hasattr(bar, "close"):
            bar.close()


class _MovedFolder:
    """A folder, for the time of one move."""

    def __init__(self, root: Path) -> None:
        self._root, self.place = root, str(root)

    @contextlib.contextmanager
    def reading(self, *, while_open: bool) -> Generator[Connection, None, None]:
        """Yield a connection to the ledger, which nobody else can open meanwhile."""
        del while_open  # what a file's other users have not written yet is not known
        folder.check_there(self._root)
        with self._owned():
            SQLiteLedger(self._root / folder.LEDGER).close()  # checks its structure, and upgrades it
            with read_alone(self._root / folder.LEDGER) as connection:
                yield connection

    def check_alone(self) -> None:
        """Do nothing: the connection itself keeps all others out."""

    @contextlib.contextmanager
    def writing(self) -> Generator[Connection, None, None]:
        """Yield a connection inside one transaction; a new folder holds no ledger if it fails."""
        path = self._root / folder.LEDGER
        new = not path.exists()
        folder.ledger_path(self._root)
        with self._owned():
            ledger = SQLiteLedger(path)
            try:
                with ledger.connections.write(durable=True) as connection:
                    yield connection
                new = False
            finally:
                ledger.close()
                if new:
                    for end in ("", "-wal", "-shm", "-journal"):
                        self._root.joinpath(folder.LEDGER + end).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _owned(self) -> Generator[None, None, None]:
        lock = OwnerLock(self._root / folder.LOCK)
        try:
            make_folder(self._root)
            free = not folder.is_open(self._root) and lock.try_acquire()
        except StoreError:
            raise
        except OSError as error:
            raise StoreUnwritable(f"cannot write {self._root}: {error}; choose a path that can be written") from error
        if not free:
            raise StoreError(f"{self._root} is open; close it everywhere before it is moved")
        try:
            yield
        finally:
            lock.release()
