"""Brings the schema of a database up to date, or prints the statements that do."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import psycopg

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.ledger.postgres import migration, steps
from cascade_memory.ledger.postgres.explained import explain, place_of
from cascade_memory.ledger.postgres.pool import connected
from cascade_memory.ledger.postgres.shape import shape_of


def migrate(url: str) -> tuple[int | None, int]:
    """Run all missing steps; return the version before (None: there was no ledger) and the version now."""
    with _connected(url) as connection:
        return migration.migrate(connection), steps.VERSION


def script_for(url: str) -> str:
    """Return the statements that bring the schema of this database up to date."""
    with _connected(url) as connection:
        return steps.script(migration.version_of(connection), shape_of(connection))


@interruptible
def _connected(url: str) -> Generator[psycopg.Connection[Any], None, None]:
    place = place_of(url)
    try:
        with connected(url) as connection:
            yield connection
    except psycopg.Error as error:
        explain(error, place)
