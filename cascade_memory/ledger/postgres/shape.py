"""Checks whether the tables in a database are those of this library: another program may have a schema of the same name."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import psycopg

from cascade_memory.ledger.postgres.schema import SCHEMA
from cascade_memory.ledger.postgres.steps import statements

Shape: TypeAlias = "dict[str, dict[str, str]]"  # the type of each column of each table

_TABLE = re.compile(rf"CREATE TABLE {SCHEMA}\.(\w+) \((.*?)\);", re.DOTALL)
_COMMA = re.compile(r",(?![^(]*\))")  # outside of brackets
_COLUMN = re.compile(r"\s*(?!PRIMARY|UNIQUE|FOREIGN)(\w+) (double precision|\w+)")
_TYPES = {"timestamptz": "timestamp with time zone"}
_COLUMNS = f"""SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c
               JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
               WHERE n.nspname = '{SCHEMA}' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
                 AND a.attnum > 0 AND NOT a.attisdropped"""


def expected() -> Shape:
    """Return the tables that a ledger of the present version has, with the types of their columns.

    >>> expected()["namespace"]
    {'id': 'bigint', 'name': 'text'}
    """
    sql = re.sub(r"--[^\n]*", "", statements())
    return {
        name: {found[1]: _TYPES.get(found[2], found[2]) for part in _COMMA.split(body) if (found := _COLUMN.match(part))}
        for name, body in _TABLE.findall(sql)
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
