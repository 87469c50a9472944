"""Exports and imports the audit log. Its digests stay behind: entries get new ones where they are imported."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cascade_memory.domain.validation import check_word
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.schema import ACTION, ALL_COUNTED

_COLUMNS = [name for name in ACTION.travelling if name not in ("kind", "counts")]
_AT_ONCE = 500


def dump(connection: Connection, names: Mapping[int, str]) -> Iterator[dict[str, Any]]:
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


def row_of(record: Mapping[str, Any], namespace: int, undoes: int | None) -> dict[str, Any]:
    """Return a checked row of the audit log; raise if the record is invalid."""
    row = {name: record[name] for name in _COLUMNS}
    row.update(kind=record["action"], namespace=namespace, counts=json.dumps(record["counts"]), undoes=undoes)
    ACTION.check({**dict.fromkeys(ACTION.names), **row})
    for name in record["counts"]:  # any other name would be somebody's text
        check_word(name, ALL_COUNTED, "the name of a count")
    return row
