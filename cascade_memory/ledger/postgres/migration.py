"""Creates the tables, and brings those of an older version up to date, or prints the statements that do.

Before and after, it checks whether they are tables of this library: another program may have a schema of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any, TypeAlias

import psycopg
from psycopg import errors

from cascade_memory.domain.interruptible import interruptible
from cascade_memory.errors import SchemaTooNew, StoreCorrupt, StoreError, StoreUnwritable
from cascade_memory.ledger.postgres import steps
from cascade_memory.ledger.postgres.dialect import SCHEMA
from cascade_memory.ledger.postgres.explained import explain, place_of
from cascade_memory.ledger.postgres.pool import connected
from cascade_memory.ledger.postgres.steps import statements
from cascade_memory.ledger.schema import ADDED

_BUSY = "SET LOCAL lock_timeout = '30s'"
_SHOWN = 3  # differences that a message names

Shape: TypeAlias = "dict[str, dict[str, str]]"  # the type of each column of each table

_CREATED = re.compile(rf"CREATE TABLE {SCHEMA}\.(\w+) \((.*?)\);", re.DOTALL)
_COMMA = re.compile(r",(?![^(]*\))")  # outside of brackets
_COLUMN = re.compile(r"\s*(?!PRIMARY|UNIQUE|FOREIGN)(\w+) (double precision|\w+)")
_TYPES = {"timestamptz": "timestamp with time zone"}
_COLUMNS = f"""SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c
               JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
               WHERE n.nspname = '{SCHEMA}' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
                 AND a.attnum > 0 AND NOT a.attisdropped"""


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


def migrate_at(url: str) -> tuple[int | None, int]:
    """Run all missing steps; return the version before (None: there was no ledger) and the version now."""
    with _connected(url) as connection:
        return migrate(connection), steps.VERSION


def script_for(url: str) -> str:
    """Return the statements that bring the schema of this database up to date."""
    with _connected(url) as connection:
        return steps.script(version_of(connection), shape_of(connection))


@interruptible
def _connected(url: str) -> Generator[psycopg.Connection[Any], None, None]:
    place = place_of(url)
    try:
        with connected(url) as connection:
            yield connection
    except psycopg.Error as error:
        explain(error, place)


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
        wrong = differences(shape_of(connection)) if version_of(connection) == steps.VERSION else []
        raise _not_ours(connection, wrong or [str(error).splitlines()[0]]) from error


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


def expected() -> Shape:
    """Return the tables that a ledger of the present version has, with the types of their columns.

    >>> expected()["namespace"]
    {'id': 'bigint', 'name': 'text'}
    """
    sql = re.sub(r"--[^\n]*", "", statements())
    return {
        name: {found[1]: _TYPES.get(found[2], found[2]) for part in _COMMA.split(body) if (found := _COLUMN.match(part))}
        for name, body in _CREATED.findall(sql)
    }


def shape_of(connection: psycopg.Connection[Any]) -> Shape:
    """Return the tables that the schema in the database has, with the types of their columns; every role may read these."""
    found: Shape = {}
    for table, column, kind in connection.execute(_COLUMNS).fetchall():  # type: ignore[arg-type]  # a constant
        found.setdefault(table, {})[column] = kind
    return found


def differences(found: Shape) -> list[str]:
    """List what a schema lacks, or has with another type than in the present version; further tables and columns do no harm.

    >>> differences({**expected(), "namespace": {"id": "integer"}})
    ['namespace.id is of type integer, not bigint', 'the column namespace.name is missing']
    """
    wrong: list[str] = []
    for table, columns in expected().items():
        there = found.get(table)
        if there is None:
            wrong.append(f"the table {table} is missing")
            continue
        for column, kind in columns.items():
            if column not in there:
                wrong.append(f"the column {table}.{column} is missing")
            elif there[column] != kind:
                wrong.append(f"{table}.{column} is of type {there[column]}, not {kind}")
    return wrong
