"""Rows that nothing leads to, and times that lie ahead: what a torn or a tampered file, or a clock that was set back, leave."""

from __future__ import annotations

import sqlite3

from cascade_memory.ledger import cases

_TIMES = (
    ("cases", "created_at"),
    ("cases", "verified_at"),
    ("episode", "opened_at"),
    ("episode", "closed_at"),
    ("recall", "at"),
    ("outcome", "at"),
    ("addition", "at"),
    ("expired", "expired_at"),
)
_ORPHANS = {
    "case_text": "key NOT IN (SELECT key FROM cases)",
    "case_vector": "key NOT IN (SELECT key FROM cases)",
    "field": "cases_key NOT IN (SELECT key FROM cases)",
    "attempt": "episode NOT IN (SELECT key FROM episode)",
    "episode_vector": "key NOT IN (SELECT key FROM episode)",
    "outcome_field": "outcome NOT IN (SELECT key FROM outcome)",
    "addition": "cases_key NOT IN (SELECT key FROM cases) AND cases_key NOT IN (SELECT key FROM expired)",
    "addition_field": "addition NOT IN (SELECT key FROM addition)",
    "episode_field": "episode NOT IN (SELECT key FROM episode)",
    "outcome": "episode NOT IN (SELECT key FROM episode)",
    "recall": "episode IS NOT NULL AND episode NOT IN (SELECT key FROM episode)",
    "expired_vector": "key NOT IN (SELECT key FROM expired)",
    "expired_field": "expired NOT IN (SELECT key FROM expired)",
    "expired": "key NOT IN (SELECT key FROM expired_vector)",
    "cases": "key NOT IN (SELECT key FROM case_text) OR key NOT IN (SELECT key FROM case_vector)",
}

_WHOLE = ("cases", "expired")  # first: what they leave belongs to nothing then


def verdict(connection: sqlite3.Connection) -> str:
    """Return SQLite's own verdict on the file: ``ok`` or what is wrong."""
    return str(connection.execute("PRAGMA quick_check").fetchone()[0])


def orphans(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many rows of which table belong to nothing."""
    counts = {
        table: int(connection.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0])
        for table, where in _ORPHANS.items()
    }
    return {table: count for table, count in counts.items() if count}


def remove_orphans(connection: sqlite3.Connection) -> None:
    """Delete what belongs to nothing, a case without its text or its vector included."""
    connection.execute("PRAGMA defer_foreign_keys = ON")  # until the end of this transaction
    for (key,) in connection.execute(f"SELECT key FROM cases WHERE {_ORPHANS['cases']}").fetchall():
        cases.delete(connection, key)  # which tells the log: it may be in an index
    for table in (*_WHOLE, *(table for table in _ORPHANS if table not in _WHOLE)):
        connection.execute(f"DELETE FROM {table} WHERE {_ORPHANS[table]}")


def ahead_of(connection: sqlite3.Connection, now: float) -> int:
    """Return how many times lie in the future."""
    return sum(
        int(connection.execute(f"SELECT count(*) FROM {table} WHERE {column} > ?", (now,)).fetchone()[0])
        for table, column in _TIMES
    )


def bring_back(connection: sqlite3.Connection, now: float) -> None:
    """Set times that lie in the future to the present: else what is dated so would never grow old."""
    for table, column in _TIMES:
        connection.execute(f"UPDATE {table} SET {column} = ?1 WHERE {column} > ?1", (now,))
