"""Creates the tables, and brings those of an older version up to date."""

from __future__ import annotations

from typing import Any

import psycopg

from cascade_memory.errors import SchemaTooNew
from cascade_memory.ledger.postgres.dialect import tables
from cascade_memory.ledger.postgres.schema import OWN_TABLES, SCHEMA
from cascade_memory.ledger.schema import SCHEMA_VERSION

_ONE_AT_A_TIME = 0x43415344  # the lock of those who migrate; it ends with the transaction


def migrate(connection: psycopg.Connection[Any]) -> None:
    """Create everything that is missing, in one transaction; however many processes try, one does it."""
    if version_of(connection) == SCHEMA_VERSION:
        return
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({_ONE_AT_A_TIME})")  # type: ignore[arg-type]
        version = version_of(connection)
        if version is not None and version > SCHEMA_VERSION:
            raise SchemaTooNew(
                f"the ledger has version {version} and this library knows {SCHEMA_VERSION}; upgrade cascade-memory"
            )
        if version is None:
            connection.execute(statements())  # type: ignore[arg-type]


def statements() -> str:
    """Return everything that creates an empty ledger, for those whose role may not run it."""
    return (
        f"CREATE SCHEMA IF NOT EXISTS {SCHEMA};\n{tables()}\n{OWN_TABLES}"
        f"INSERT INTO {SCHEMA}.meta VALUES ('identity', substr(md5(gen_random_uuid()::text), 1, 12));\n"
        f"CREATE TABLE {SCHEMA}.version (number bigint NOT NULL);\nINSERT INTO {SCHEMA}.version VALUES ({SCHEMA_VERSION});\n"
    )


def version_of(connection: psycopg.Connection[Any]) -> int | None:
    """Return the version of the ledger in a database; None if there is none."""
    row = connection.execute(f"SELECT to_regclass('{SCHEMA}.version') IS NOT NULL").fetchone()  # type: ignore[arg-type]
    if row is None or not row[0]:
        return None
    found = connection.execute(f"SELECT number FROM {SCHEMA}.version").fetchone()  # type: ignore[arg-type]
    return None if found is None else int(found[0])
