"""The ledger in one SQLite file."""

from __future__ import annotations

import os
from pathlib import Path

from cascade_memory.ledger.archive import SQLiteArchive
from cascade_memory.ledger.connections import Connections
from cascade_memory.ledger.core import Ledger
from cascade_memory.ledger.lessons import SQLLessons
from cascade_memory.ledger.maintenance import SQLiteMaintenance


class SQLiteLedger(Ledger):
    """Stores everything that was acknowledged in one SQLite file (or in RAM, with ``path=None``).

    A recall survives a killed process. An outcome, its case and everything else also survive a power cut.

    >>> ledger = SQLiteLedger(None)
    >>> ledger.namespace("default", create=True)
    1
    >>> ledger.insight.counts(1)["cases"]
    0
    """

    def __init__(self, path: Path | None) -> None:
        path = None if path is None else Path(os.path.abspath(path))  # absolute: the working directory may change
        connections = Connections(path)
        super().__init__(connections, path)
        self.lessons = SQLLessons(connections)
        self.maintenance = SQLiteMaintenance(connections)
        self.archive = SQLiteArchive(connections)
