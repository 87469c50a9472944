"""Reads facts about the folder: texts by name. In an edited file, a fact may be anything: too long, bytes, or not UTF-8."""

from __future__ import annotations

import sqlite3
from typing import Any

from cascade_memory.domain.sqlite_files import at_most
from cascade_memory.ledger.database import Connection

LONGEST = 100_000  # bytes of a fact; the longest is the name of an embedder
UNREADABLE = ""  # what a fact says that cannot be read: no fact says nothing
_BYTES = "CAST(value AS BLOB)"
_ONE = f"SELECT CASE WHEN length({_BYTES}) <= {LONGEST} THEN {_BYTES} END FROM meta WHERE key = ?"
_NEEDED = "SELECT 1 FROM meta WHERE key IN ('embedder', 'generation')"


def asked(name: str) -> tuple[str, tuple[str]]:
    """Return the statement that reads a fact, with its parameters; ``said`` reads what it returns."""
    return _ONE, (name,)


def said(row: Any) -> str | None:
    r"""Read the row that a statement of ``asked`` returned: the fact, None if there is none, or ``UNREADABLE``.

    >>> said(None), said((b"7",)), said((b"\xff",)), said((None,))
    (None, '7', '', '')
    """
    if row is None:
        return None
    try:
        return bytes(row[0]).decode()
    except (TypeError, UnicodeDecodeError):
        return UNREADABLE


def fact(connection: Connection, name: str) -> str | None:
    """Return a fact; None if it was never stored; ``UNREADABLE`` if it is no text, or longer than ``LONGEST``."""
    return said(connection.execute(*asked(name)).fetchone())


def whole_number(text: str | None) -> int:
    """Read a fact that is a whole number; 0 if it is anything else.

    >>> whole_number("12"), whole_number("9" * 5_000), whole_number("-1"), whole_number(None)
    (12, 0, 0, 0)
    """
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 16 else 0


def check_needed(connection: sqlite3.Connection) -> None:
    """Raise an error of SQLite if a fact that every write reads and compares is longer than ``LONGEST``."""
    with at_most(connection, LONGEST):
        if connection.execute(f"{_NEEDED} AND length({_BYTES}) > {LONGEST}").fetchone():
            raise sqlite3.DataError("a fact about the folder is too long")
