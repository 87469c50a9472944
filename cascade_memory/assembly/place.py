"""Where a memory is: a folder, or a database."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Protocol, cast

from cascade_memory.assembly.folder import Folder
from cascade_memory.assembly.settings import Settings
from cascade_memory.domain.display import quoted
from cascade_memory.domain.validation import check_path
from cascade_memory.engine.engine import Engine
from cascade_memory.engine.parts import Parts
from cascade_memory.errors import InvalidInput, MissingExtra
from cascade_memory.lazy import load

if TYPE_CHECKING:
    from cascade_memory.ledger.core import Ledger

_ONE_SLASH = re.compile(r"\s*postgres(ql)?:(?!//)", re.IGNORECASE)
_URL = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]+)://")


class Place(Protocol):
    """Where a memory is stored; it opens what the memory needs there. Its ``str`` is for people, and holds no password."""

    @property
    def key(self) -> str:
        """A key that is the same for each way to name this place."""
        ...

    @property
    def is_new(self) -> bool:
        """Whether opening this place would make files on this machine."""
        ...

    def check_there(self) -> None:
        """Raise if there is no memory, since a mistyped name must not create a new one."""
        ...

    def ledger(self) -> Ledger:
        """Open the ledger; create it if there is none."""
        ...

    def complete(self, parts: Parts, settings: Settings) -> Parts:
        """Return the parts with those that depend on the place: snapshots, the mirror, and the lock for feeding the mirror."""
        ...

    def opened(self, engine: Engine) -> None:
        """Do what has to wait until the engine works."""
        ...


def place_of(path: object) -> Place:
    """Return the place that a path or URL names.

    >>> str(place_of("memory"))
    'memory'
    """
    if not isinstance(path, (str, os.PathLike)) or not str(path).strip():
        wanted = "name a folder or a PostgreSQL database, or be None for a memory in RAM"
        raise InvalidInput(f"path must {wanted}, not {quoted(path)}")
    if _ONE_SLASH.match(str(path)):  # a Path joins two slashes, too; and a folder's name would show the password
        raise InvalidInput("a URL of PostgreSQL begins with postgresql://, with two slashes")
    if isinstance(path, str) and (found := _URL.match(path)):
        if found[1].lower() not in ("postgresql", "postgres"):
            raise InvalidInput(f"a memory is kept in a folder or at a URL that begins with postgresql://, not {found[1]}://")
        return _database(path.strip())
    return Folder(check_path(path, "path"))


def _database(url: str) -> Place:
    try:
        database = load("cascade_memory.assembly", "Database", {"Database": "database"}, optional=("psycopg",))
    except MissingExtra as error:
        said = 'a memory in PostgreSQL needs the extra "postgres": pip install "cascade-memory[postgres]"'
        raise MissingExtra(said) from error
    return cast("Place", database(url))
