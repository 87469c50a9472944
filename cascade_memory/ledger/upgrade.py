"""From older schema versions to the present one."""

from __future__ import annotations

import sqlite3

from cascade_memory.errors import SchemaTooNew, StoreCorrupt
from cascade_memory.ledger.schema import APPLICATION_ID, SCHEMA_VERSION


def upgrade(connection: sqlite3.Connection, application: int, version: int, path: str) -> None:
    """Bring a ledger to ``SCHEMA_VERSION``; refuse a newer one. Version 1 is the first: nothing to do yet."""
    if application != APPLICATION_ID:
        raise StoreCorrupt(f"{path} is a SQLite file, but no ledger of cascade-memory; choose another folder")
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{path} has schema version {version}, this library reads up to {SCHEMA_VERSION}; upgrade cascade-memory"
        )
    if version < 1:
        raise StoreCorrupt(f"{path} has schema version {version}, which never existed; restore it from a backup")
    del connection
