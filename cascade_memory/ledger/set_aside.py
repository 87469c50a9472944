"""The rows of cases that are set aside: they are kept for some days in separate tables, and can be forgotten there."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cascade_memory.ledger import owned
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.events import OBSERVERS
from cascade_memory.ledger.rows import KEYS, executed_for, fetched_for, usable


def remove(connection: Connection, keys: Sequence[int]) -> list[tuple[int, str]]:
    """Delete cases that are set aside for good; return (key, id) of those that existed."""
    gone = [
        (key, case_id) for key, case_id in fetched_for(connection, f"SELECT key, id FROM expired WHERE key IN ({KEYS})", keys)
    ]
    if gone:
        there = [key for key, _ in gone]
        drop_additions(connection, there)
        remove_rows(connection, there)
        for one in OBSERVERS:
            one.on_case_gone(connection, there, "lost")
    return gone


def remove_rows(connection: Connection, keys: Sequence[int]) -> None:
    """Delete them, but not who added them by hand."""
    owned.delete_with(connection, "expired", keys)
    executed_for(connection, f"DELETE FROM expired WHERE key IN ({KEYS})", keys)


def displace(connection: Connection, namespace: int, pair: str, case_id: str) -> None:
    """Delete the expired cases that a new case replaces: those with the same pair or the same id."""
    rows = connection.execute(
        "SELECT key FROM expired WHERE (namespace = ? AND pair = ?) OR id = ?", (namespace, pair, case_id)
    ).fetchall()
    remove(connection, [key for (key,) in rows])


def drop_additions(connection: Connection, keys: Sequence[int], condition: str = "") -> None:
    """Delete the records of who added these cases by hand."""
    mine = f"cases_key IN ({KEYS}) {condition}"
    executed_for(connection, f"DELETE FROM addition_field WHERE addition IN (SELECT key FROM addition WHERE {mine})", keys)
    executed_for(connection, f"DELETE FROM addition WHERE {mine}", keys)


def uncount(connection: Connection, keys: Sequence[int], value: float) -> None:
    """Take back that an outcome was counted for these cases, if they are set aside."""
    rows = fetched_for(connection, f"SELECT key, record FROM expired WHERE key IN ({KEYS})", keys)
    for key, record in usable(rows, lambda row: (row[0], _uncounted(row[1], value))):
        connection.execute("UPDATE expired SET record = ? WHERE key = ?", (record, key))


def _uncounted(record: str, value: float) -> str:
    kept = json.loads(record)
    kept["shown"], kept["succeeded"] = max(0, kept["shown"] - 1), max(0.0, kept["succeeded"] - value)
    return json.dumps(kept, ensure_ascii=False)
