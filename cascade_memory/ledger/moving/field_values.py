"""Converts values of metadata when they are moved from SQLite to PostgreSQL, or back.

PostgreSQL's encoding of a value is made for searching: it does not tell 1 from 1.0, and a long text is cut. So on the way back
to SQLite, a number or a long text is looked up in the metadata from which it was made.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, cast

from cascade_memory.ledger.audit import Fault
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.declaring import Table
from cascade_memory.ledger.filters import FieldValue, encode_value
from cascade_memory.ledger.moving.pages import Row
from cascade_memory.ledger.postgres.dialect import decoded, encoded
from cascade_memory.ledger.rows import KEYS, fetched_for

_VALUE, _NAME, _OWNER = 2, 1, 3  # positions in each table of fields

# Where the metadata of a row's owner are. Outcomes of old ledgers have none of their own, but their case has the same.
_OWNERS = {
    "field": f"SELECT key, metadata FROM case_text WHERE key IN ({KEYS})",
    "expired_field": f"SELECT key, record FROM expired WHERE key IN ({KEYS})",
    "outcome_field": f"""SELECT outcome.key, coalesce(outcome.metadata, case_text.metadata)
                         FROM outcome LEFT JOIN case_text ON case_text.key = outcome.cases_key WHERE outcome.key IN ({KEYS})""",
    "addition_field": f"SELECT key, metadata FROM addition WHERE key IN ({KEYS})",
    "episode_field": f"SELECT key, metadata FROM episode WHERE key IN ({KEYS})",
}


def comparable(connection: Connection, row: Row) -> Row:
    """Return a row of metadata fields with its value encoded, so that the rows of both databases can be compared."""
    value = row[_VALUE]
    raw = encoded(value) if isinstance(connection, sqlite3.Connection) else bytes(value)
    return (*row[:_VALUE], raw, *row[_VALUE + 1 :])


def portable(connection: Connection, table: Table, rows: Sequence[Row]) -> list[Row] | Fault:
    """Return rows of metadata fields with values that every database can store.

    If a long text was cut, and its rest is nowhere else, return a ``Fault`` that names the row.
    """
    if isinstance(connection, sqlite3.Connection):
        return [(*row[:_VALUE], FieldValue(row[_VALUE]), *row[_VALUE + 1 :]) for row in rows]
    unsure = sorted({row[_OWNER] for row in rows if row[_VALUE][:1] == b"n" or decoded(row[_VALUE]) is None})
    given = {key: _metadata(table, text) for key, text in fetched_for(connection, _OWNERS[table.name], unsure)}
    found: list[Row] = []
    for row in rows:
        value = _given(given.get(row[_OWNER], {}).get(row[_NAME]), row[_VALUE])
        value = decoded(row[_VALUE]) if value is None else value
        if value is None:
            return Fault(table.name, row[_OWNER], f"the long text of the field {row[_NAME][:80]!r} is nowhere else")
        found.append((*row[:_VALUE], FieldValue(value), *row[_VALUE + 1 :]))
    return found


def _metadata(table: Table, text: str | None) -> dict[str, Any]:
    found = json.loads(text or "{}")
    return cast("dict[str, Any]", json.loads(found["metadata"]) if table.name == "expired_field" else found)


def _given(metadata: Any, raw: bytes) -> str | float | bytes | None:
    """Return the value, or the one of a list of values, whose encoding is ``raw``; None if there is none."""
    for one in cast("list[Any]", metadata) if isinstance(metadata, list) else [] if metadata is None else [metadata]:
        value = encode_value(one)
        if encoded(value) == raw:
            return value
    return None
