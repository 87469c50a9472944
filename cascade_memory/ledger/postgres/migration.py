"""Creates the tables, and brings those of an older version up to date."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import errors

from cascade_memory.errors import SchemaTooNew, StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ledger.postgres import steps
from cascade_memory.ledger.postgres.schema import SCHEMA
from cascade_memory.ledger.postgres.shape import Shape, differences, expected, shape_of
from cascade_memory.ledger.schema import ADDED

_BUSY = "SET LOCAL lock_timeout = '30s'"
_SHOWN = 3  # differences that a message names


def migrate(connection: psycopg.Connection[Any]) -> int | None:
    """Run every missing step (see ``steps``), each in one transaction; if several processes try, only one of them runs a step.

    Return the version that the ledger had before; None if there was no ledger.
    """
    before = version = version_of(connection)
    while version != steps.VERSION or _added(connection) is not None:
        version = _step(connection)
    wrong = differences(shape_of(connection))
    if wrong:
        raise _not_ours(connection, wrong)
    return before


def version_of(connection: psycopg.Connection[Any]) -> int | None:
    """Return the version of the ledger in a database, None if it has no ledger. Raise if its schema cannot be used."""
    found = shape_of(connection)
    if "version" not in found:
        if strange := sorted(set(found) & set(expected())):
            raise _not_ours(connection, [f"it has the table {strange[0]}, but no version"])
        return None
    version = _number(connection, found)
    if version > steps.VERSION:
        raise SchemaTooNew(
            f"the schema {SCHEMA} in {_place(connection)} has version {version}, and this library knows versions up to "
            f"{steps.VERSION}; upgrade cascade-memory"
        )
    return version


def _number(connection: psycopg.Connection[Any], found: Shape) -> int:
    if found["version"].get("number") != "bigint":
        raise _not_ours(connection, ["its table version has other columns"])
    try:
        row = connection.execute(f"SELECT number FROM {SCHEMA}.version").fetchone()  # type: ignore[arg-type]
    except errors.InsufficientPrivilege as error:
        raise StoreUnwritable(
            f"the role {connection.info.user!r} has no rights to use the schema {SCHEMA} in {_place(connection)}: let its "
            "owner run the GRANT lines that cascade-memory data migrate --print-sql shows"
        ) from error
    if row is None:
        raise _not_ours(connection, ["its version is missing"])
    return int(row[0])


def _added(connection: psycopg.Connection[Any]) -> str | None:
    return steps.added_to(shape_of(connection)) if ADDED else None


def _step(connection: psycopg.Connection[Any]) -> int | None:
    """Run the next step, unless another process has just run it; return the version that the schema has now."""
    try:
        with connection.transaction():
            connection.execute(_BUSY)
            connection.execute(steps.ONE_AT_A_TIME)  # type: ignore[arg-type]
            version = version_of(connection)
            step = _added(connection) if version == steps.VERSION else steps.step_after(version)
            if version == steps.VERSION and step is None:
                return version
            if step is None:
                raise StoreCorrupt(
                    f"the schema {SCHEMA} in {_place(connection)} has version {version}, from which no step leads to "
                    f"version {steps.VERSION}; restore the database from a backup"
                )
            if version is None:
                _check_encoding(connection)
            connection.execute(step)  # type: ignore[arg-type]
            return steps.VERSION if version in (None, steps.VERSION) else version + 1
    except errors.InsufficientPrivilege as error:
        raise StoreUnwritable(
            f"the role {connection.info.user!r} has no rights to make or change the schema {SCHEMA} in {_place(connection)}: "
            "let a role that has them run with psql what cascade-memory data migrate URL --print-sql prints, then open it again"
        ) from error
    except (errors.DuplicateTable, errors.DuplicateObject, errors.DuplicateColumn, errors.UndefinedTable) as error:
        raise _not_ours(connection, [str(error).splitlines()[0]]) from error


def _check_encoding(connection: psycopg.Connection[Any]) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"{_place(connection)} has the encoding {encoding}, which cannot hold every text; make one for the memory: "
            "CREATE DATABASE agents TEMPLATE template0 ENCODING 'UTF8'"
        )


def _not_ours(connection: psycopg.Connection[Any], wrong: list[str]) -> StoreCorrupt:
    return StoreCorrupt(
        f"the schema {SCHEMA} in {_place(connection)} is not one that this library made ({'; '.join(wrong[:_SHOWN])}). Nothing "
        f"was changed: use another database, or rename that schema: ALTER SCHEMA {SCHEMA} RENAME TO another_name"
    )


def _place(connection: psycopg.Connection[Any]) -> str:
    return f"the database {connection.info.dbname} at {connection.info.host or 'this machine'}"
