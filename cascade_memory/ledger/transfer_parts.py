"""Exports and imports what belongs to a record: nested rows, and the audit log.

An export lists nested rows, unchanged, in the record of their owner, the row to which they belong. A table is exported in this
way if it declares a name for its rows in that record: ``nested``. So are the additions of a case by hand, which older versions
did not export. The digests of the audit log stay behind: entries get new ones where they are imported.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from cascade_memory.domain.metadata import STORED_AT_MOST, check_metadata
from cascade_memory.domain.validation import check_word
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger import rules
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.declaring import Column, Table
from cascade_memory.ledger.rows import pack_solution
from cascade_memory.ledger.schema import ACTION, ADDITION, ALL_COUNTED, TABLES

_COLUMNS = [name for name in ACTION.travelling if name not in ("kind", "counts")]
_AT_ONCE = 500
_NESTED = tuple(table for table in TABLES if table.nested)
_BY_WHOM = ["actor", "channel"]
_OF_ADDITION = ADDITION.travelling


def dump_actions(connection: Connection, names: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    """Yield the entries of all namespaces.

    Left out are the keys of outcomes, by which a verdict is taken back: another ledger has other keys.
    """
    listed = ", ".join(f"action.{name}" for name in _COLUMNS)
    query = f"""SELECT action.key, action.namespace, action.kind, action.counts, undone.id, {listed} FROM action
                LEFT JOIN action AS undone ON undone.key = action.undoes WHERE action.key > ? ORDER BY action.key LIMIT ?"""
    after = 0
    while rows := connection.execute(query, (after, _AT_ONCE)).fetchall():
        for _, namespace, kind, counts, undoes, *values in rows:
            if namespace in names:  # else it is about this ledger as a whole
                about: dict[str, Any] = {"kind": "action", "action": kind, "namespace": names[namespace], "undoes": undoes}
                entry: dict[str, Any] = dict(zip(_COLUMNS, values, strict=True))
                yield {**about, "counts": json.loads(counts), **entry}
        after = rows[-1][0]


def action_row(record: Mapping[str, Any], namespace: int, undoes: int | None) -> dict[str, Any]:
    """Return a checked row of the audit log; raise if the record is invalid."""
    row = {name: record[name] for name in _COLUMNS}
    row.update(kind=record["action"], namespace=namespace, counts=json.dumps(record["counts"]), undoes=undoes)
    ACTION.check({**dict.fromkeys(ACTION.names), **row})
    for name in record["counts"]:  # any other name would be somebody's text
        check_word(name, ALL_COUNTED, "the name of a count")
    return row


class Nested:
    """Reads the nested rows of owners, for an export; most owners have none."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._owners = {table.name: _owners(connection, table) for table in _NESTED}

    def of(self, owner: str, key: int) -> dict[str, list[dict[str, Any]]]:
        """Return the nested rows of a row of a table, by their names in an export."""
        return {table.nested: self._rows(table, key) for table in _NESTED if owner in _column(table).of}

    def _rows(self, table: Table, key: int) -> list[dict[str, Any]]:
        if key not in self._owners[table.name]:
            return []
        query = (
            f"SELECT {', '.join(table.travelling)} FROM {table.name} WHERE {_column(table).name} = ? ORDER BY {table.keys[0]}"
        )
        rows = self._connection.execute(query, (key,)).fetchall()
        found = [dict(zip(table.travelling, row, strict=True)) for row in rows]
        return [{name: as_text(one) if isinstance(one, bytes) else one for name, one in row.items()} for row in found]


def insert_nested(connection: Connection, owner: str, key: int, namespace: int, record: Mapping[str, Any]) -> None:
    """Check and store the nested rows that the record of an imported row lists."""
    for table in (one for one in _NESTED if owner in _column(one).of):
        for one in a_list(record.get(table.nested, []), table.nested):
            given = an_object(one, f"one of {table.nested}")
            row = {name: _stored(table, name, given[name]) for name in table.travelling}
            table.check(row, table.travelling)
            put(connection, table.name, {**row, _column(table).name: key, "namespace": namespace})


def additions_of(connection: Connection, case: int) -> list[dict[str, Any]]:
    """Return a record of each time that a case was added by hand."""
    query = f"SELECT {', '.join(_OF_ADDITION)} FROM addition WHERE cases_key = ? ORDER BY key"
    found = [dict(zip(_OF_ADDITION, row, strict=True)) for row in connection.execute(query, (case,))]
    return [{**one, "metadata": json.loads(one["metadata"])} for one in found]


def checked_additions(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of the additions of a case by hand.

    Exports of older versions lack these records. Then, for a case without an episode, one record is made from the case's own
    fields.
    """
    first = {"source": record["source"], "at": record["created_at"], "metadata": record["metadata"], "solution": None}
    first.update({name: record[name] for name in _BY_WHOM})
    by_hand = [first] if record["episode"] is None else []
    return [
        _addition(record, addition)
        for addition in (by_hand if record["additions"] is None else a_list(record["additions"], "additions"))
    ]


def _addition(record: Mapping[str, Any], addition: object) -> dict[str, Any]:
    given = {**dict.fromkeys(_BY_WHOM), **an_object(addition, "an addition")}  # older versions did not note by whom
    values: dict[str, Any] = {name: given[name] for name in _OF_ADDITION}
    if values["solution"] is not None:
        _, values["solution"] = pack_solution(rules.solution(record["solution_kind"], values["solution"]))
    ADDITION.check(values, [name for name in _OF_ADDITION if name != "metadata"])
    return {**values, "metadata": check_metadata(values["metadata"], most=STORED_AT_MOST)}


def an_object(value: object, name: str) -> dict[str, Any]:
    """Return a JSON object, or raise."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be a JSON object, not a {type(value).__name__}")
    return cast("dict[str, Any]", value)


def a_list(value: object, name: str) -> list[Any]:
    """Return a list, or raise."""
    if not isinstance(value, list):
        raise InvalidInput(f"{name} must be a list, not a {type(value).__name__}")
    return cast("list[Any]", value)


def put(connection: Connection, table: str, values: Mapping[str, Any]) -> None:
    """Insert a row."""
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))


def as_text(blob: bytes | None) -> str | None:
    """Return bytes as the text that an export contains.

    >>> as_text(b"ab"), as_bytes("YWI=", "it")
    ('YWI=', b'ab')
    """
    return None if blob is None else base64.b64encode(blob).decode()


def as_bytes(text: object, name: str) -> bytes | None:
    """Return the bytes that ``as_text`` wrote."""
    if text is None:
        return None
    try:
        return base64.b64decode(cast("str", text), validate=True)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{name} is not base64") from error


def _owners(connection: Connection, table: Table) -> set[int]:
    return {key for (key,) in connection.execute(f"SELECT DISTINCT {_column(table).name} FROM {table.name}").fetchall()}


def _column(table: Table) -> Column:
    assert table.owner is not None, f"the rows of {table.name} belong to none"
    return table.owner


def _stored(table: Table, name: str, value: Any) -> Any:
    return as_bytes(value, name) if table.column(name).type is bytes else value
