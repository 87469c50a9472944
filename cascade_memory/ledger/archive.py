"""The part of the ledger that exports and imports it as plain records, and copies it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

from cascade_memory.domain.actions import NewAction
from cascade_memory.domain.private_files import create_file
from cascade_memory.domain.sqlite_files import connected
from cascade_memory.domain.trajectory import Solution
from cascade_memory.ledger import action_log, redeeming, transfer
from cascade_memory.ledger.copying import verified
from cascade_memory.ledger.database import Database, take_long


class SQLArchive(ABC):
    """Exports and imports the content of a ledger; how it is copied as a whole depends on the database."""

    def __init__(self, connections: Database) -> None:
        self._connections = connections

    def dump(self) -> Generator[dict[str, Any], None, None]:
        """Yield everything as JSON-compatible records, from one consistent state, in an order in which they can be loaded.

        Close the generator if you stop early, and after an error.
        """
        with self._connections.snapshot() as connection:
            yield from transfer.dump(connection)

    def load(
        self,
        records: Iterable[dict[str, Any]],
        dimension: int,
        key: Callable[[Solution], str],
        action: NewAction | None = None,
    ) -> int:
        """Add the records that do not exist yet, durably; return how many. ``key`` is the matcher's (``SolutionMatcher.key``).

        Adds all of them or none: an invalid record raises ``InvalidInput``, and nothing is added.
        """
        with self._connections.write(durable=True) as connection:
            take_long(connection)
            inserted = transfer.load(connection, records, dimension, key)
            if inserted:
                self._connections.belonging.claim(connection)
            action_log.write(connection, 0, action, counts={"records": inserted})
            return inserted

    @abstractmethod
    def copy_to(self, target: Path) -> dict[str, int]:
        """Write one consistent state to a new file and check it; return how many ``cases``, ``episodes``, ``outcomes`` it has.

        Other writers can go on meanwhile. Facts about mirrors and the fact ``identity`` are not copied.
        """


class SQLiteArchive(SQLArchive):
    """Exports and imports the content of a ledger in a SQLite file, and copies the file."""

    def copy_to(self, target: Path) -> dict[str, int]:
        """Write one consistent state to a new file while others go on writing; return counts of what the copy holds."""
        with self._connections.read() as connection:
            create_file(target)  # created with private permissions; SQLite fills it
            connection.execute("VACUUM INTO ?", (str(target),))
            with connected(target) as copy:
                copy.execute("PRAGMA secure_delete = ON")
                # The copy has no Chroma yet, and must not share the one of the original.
                copy.execute("DELETE FROM meta WHERE key LIKE 'mirror%' OR key = 'identity'")
                copy.execute(redeeming.LET_GO)  # whoever gets the copy must not be able to sign for the original
                copy.commit()
            return verified(target)
