"""The rows of expired cases: they are kept for some days in separate tables, and can be forgotten there like any other case."""

from __future__ import annotations

from collections.abc import Iterable

from cascade_memory.ledger.database import Connection


def remove(connection: Connection, keys: Iterable[int]) -> list[tuple[int, str]]:
    """Delete expired cases for good; return (key, id) of those that existed."""
    gone: list[tuple[int, str]] = []
    for key in keys:
        if connection.execute("SELECT 1 FROM expired WHERE key = ?", (key,)).fetchone() is None:
            continue
        drop_additions(connection, key)
        connection.execute("DELETE FROM expired_field WHERE expired = ?", (key,))
        connection.execute("DELETE FROM expired_vector WHERE key = ?", (key,))
        gone += connection.execute("DELETE FROM expired WHERE key = ? RETURNING key, id", (key,)).fetchall()
    return gone


def displace(connection: Connection, namespace: int, pair: str, case_id: str) -> None:
    """Delete the expired cases that a new case replaces: those with the same pair or the same id."""
    rows = connection.execute(
        "SELECT key FROM expired WHERE (namespace = ? AND pair = ?) OR id = ?", (namespace, pair, case_id)
    ).fetchall()
    remove(connection, [key for (key,) in rows])


def drop_additions(connection: Connection, key: int) -> None:
    """Delete the records of who added a case by hand."""
    mine = "SELECT key FROM addition WHERE cases_key = ?"
    connection.execute(f"DELETE FROM addition_field WHERE addition IN ({mine})", (key,))
    connection.execute("DELETE FROM addition WHERE cases_key = ?", (key,))
