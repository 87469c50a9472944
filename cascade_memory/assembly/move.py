"""Moves a memory from a folder into a database, or back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from cascade_memory.assembly.folder import Folder
from cascade_memory.assembly.moved_folder import MovedFolder
from cascade_memory.assembly.place import place_of
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.moving.copying import Copying
from cascade_memory.ledger.moving.pages import Row
from cascade_memory.memory.progress import progress_bar
from cascade_memory.ports.snapshots import Snapshot, Snapshots


def move(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, while_open: bool = False, progress: bool | None = None
) -> dict[str, int]:
    """Copy a memory from a folder into a PostgreSQL database, or back; return the number of rows of each table.

    All rows keep their keys. They are read in one state and written in one transaction, and compared before it is committed.
    What the ranker learned is copied as well. The source stays as it is. Chroma is filled again when the target is opened.

    Args:
        source: The folder or the URL of the memory. It must not be open anywhere: later writes would not be in the copy.
        target: A URL of a database, or a folder, that holds no memory yet.
        while_open: Move a database although others have it open. They cannot write while it is copied.
        progress: Show a progress bar; None: only on a terminal.
    """
    one, other = _end(source), _end(target)
    if isinstance(one, MovedFolder) == isinstance(other, MovedFolder):
        raise InvalidInput(
            "a memory is moved from a folder to a URL that begins with postgresql://, or back; "
            "use backup and restore between folders, and pg_dump between databases"
        )
    with one.reading(while_open=while_open) as from_, other.writing() as to:
        moved = Copying(from_, to, (one.place, other.place), _Shown(progress)).run()
        learned = other.learned(to, anew=True)
        for snapshot in one.learned(from_).every():
            _copy(snapshot, learned)
        one.check_alone()
        return moved


class _End(Protocol):
    @property
    def place(self) -> str: ...
    def reading(self, *, while_open: bool) -> AbstractContextManager[Connection]: ...
    def check_alone(self) -> None: ...
    def writing(self) -> AbstractContextManager[Connection]: ...
    def learned(self, connection: Connection, *, anew: bool = False) -> Snapshots: ...


def _end(where: str | os.PathLike[str]) -> _End:
    place = place_of(where)  # or it raises, and says what is wrong or missing
    if isinstance(place, Folder):
        return MovedFolder(place.path)
    from cascade_memory.assembly.moved_database import MovedDatabase

    return MovedDatabase(str(where).strip())


def _copy(snapshot: Snapshot, target: Snapshots) -> None:
    weights = snapshot.weights
    target.save(snapshot, None if weights is None else lambda path: _copy_file(weights, path))


def _copy_file(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


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
