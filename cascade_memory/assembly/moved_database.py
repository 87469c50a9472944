"""A database as the source or the target of a move."""

from __future__ import annotations

from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.postgres.moving import OpenedForMove
from cascade_memory.ports.snapshots import Snapshots
from cascade_memory.snapshots import SnapshotsInRows


class MovedDatabase(OpenedForMove):
    """A ledger in PostgreSQL and what was learned from it, for the time of one move."""

    def learned(self, connection: Connection, *, anew: bool = False) -> Snapshots:
        """Return the store of snapshots, used in the transaction of ``connection``; ``anew`` has no effect here."""
        del anew
        return SnapshotsInRows(self.snapshots(connection))
