"""The ledger in a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from cascade_memory.domain.records import SETTLED
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.archive import SQLArchive
from cascade_memory.ledger.core import Ledger
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.lessons import SQLLessons
from cascade_memory.ledger.maintenance import SQLMaintenance
from cascade_memory.ledger.postgres.connections import PostgresConnections
from cascade_memory.ledger.postgres.explained import explain, place_of
from cascade_memory.ledger.postgres.leases import Lease, holders
from cascade_memory.ledger.postgres.migration import version_of
from cascade_memory.ledger.postgres.pool import connected
from cascade_memory.ledger.postgres.snapshot_rows import PostgresSnapshotRows

# The solutions that tell the candidates of an episode's recalls apart. Their numbers are packed, eight bytes each.
_NUMBER = " | ".join(f"(get_byte(packed, place + {byte})::bigint << {8 * byte})" for byte in range(8))
_KINDS = f"""SELECT solution.id, solution.digest, case_text.solution_kind
  FROM (SELECT DISTINCT {_NUMBER} AS number
        FROM (SELECT groups AS packed FROM recall
              WHERE episode = (SELECT key FROM episode WHERE id = ?) AND kind = 'recall') AS recalled,
             generate_series(0, length(packed) - 8, 8) AS place) AS recalled
  JOIN solution ON solution.id = recalled.number
  JOIN case_text ON case_text.key = (SELECT key FROM cases WHERE cases.solution = solution.id LIMIT 1)"""


class PostgresLedger(Ledger):
    """The ledger in a PostgreSQL database, which many machines can share.

    Whatever a call has stored survives the death of any process, and that of the server.
    """

    def __init__(self, url: str) -> None:
        connections = PostgresConnections(url)
        super().__init__(connections, None)
        self.lessons = PostgresLessons(connections)
        self.maintenance = PostgresMaintenance(connections)
        self.archive = PostgresArchive(connections)
        self.snapshots = PostgresSnapshotRows(connections)
        self._connections = connections

    def lease(self, job: str, namespace: int) -> Lease:
        """Return the lease of a job: the right to do the job, which only one worker has at a time."""
        return Lease(self._connections, job, namespace)

    def leases(self) -> dict[str, str]:
        """Return, for each job that is done at present, who holds its lease, as a text."""
        return holders(self._connections)

    def _asked_kinds(self, connection: Connection, episode_id: str) -> Sequence[Any]:
        return connection.execute(_KINDS, (episode_id,)).fetchall()

    @staticmethod
    def exists(url: str) -> bool:
        """Say whether there is a ledger in the database, without making one."""
        try:
            with connected(url) as connection:
                return version_of(connection) is not None
        except psycopg.Error as error:
            explain(error, place_of(url))


class PostgresLessons(SQLLessons):
    """The part ``lessons`` of a ledger in PostgreSQL (see ``SQLLessons``).

    ``last_outcome`` reads the key from the ledger's log, and not from the sequence that gave it: PostgreSQL does not roll back
    a sequence with its transaction.
    """

    def last_outcome(self) -> int:
        """Return the key of the newest outcome ever recorded, even if it was forgotten since."""
        with self._connections.read() as connection:
            row = connection.execute("SELECT ref FROM change WHERE kind = ? ORDER BY seq DESC LIMIT 1", (SETTLED,)).fetchone()
        return 0 if row is None else int(row[0])


class PostgresMaintenance(SQLMaintenance):
    """Maintenance in PostgreSQL, which guards types, references and checksums itself: less can be wrong than in a file."""

    def integrity(self) -> str:
        """Return ``ok``, without a search for damage: a statement that needs an unreadable page fails by itself."""
        with self._connections.read() as connection:
            connection.execute("SELECT 1 FROM meta LIMIT 1").fetchone()
        return "ok"

    def rebuild_indexes(self) -> None:
        """Do nothing: nobody edits the files of a server, so its indexes are right."""


class PostgresArchive(SQLArchive):
    """Exports and imports a ledger in PostgreSQL; complete copies are made by the tools of the database."""

    def copy_to(self, target: Path) -> dict[str, int]:
        """Raise ``InvalidInput``, with the command that makes a backup instead."""
        del target  # a name that is used while a folder is being backed up
        raise InvalidInput(
            "a memory in PostgreSQL is backed up with the database: pg_dump --schema=cascade_memory --file=BACKUP.sql URL"
        )
