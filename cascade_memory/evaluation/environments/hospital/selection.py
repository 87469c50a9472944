"""Tables and their filters as SQL: the conditions of ``FilterDB`` are checked and quoted here, and run elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

# No two repetitions in a row may match the same characters: these read untrusted text, and must be quick whatever it is.
_COMPARISON = re.compile(r"\s*(\w+)\s*(>=|<=|==?|>|<)(.*)", re.DOTALL)
_AMONG = re.compile(r"\s*(\w+)\s+in\s(.*)", re.DOTALL | re.IGNORECASE)
_EXTREME = re.compile(r"\s*(max|min)\s*\(\s*(\w+)\s*\)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Selection:
    """Some rows of a table, as the SQL query that returns them."""

    table: str
    columns: tuple[str, ...]
    sql: str

    def column(self, name: str) -> str:
        """Return the exact name of a column; capital and small letters do not matter.

        >>> Selection("patients", ("ROW_ID", "DOB"), "SELECT 1").column(" dob")
        'DOB'
        """
        found = [one for one in self.columns if one.lower() == name.strip().strip("'\"[]").lower()]
        if not found:
            raise LookupError(f"{self.table} has no column {name.strip()!r}; it has {', '.join(self.columns)}")
        return found[0]

    def where(self, condition: str) -> Selection:
        """Return the selection of those rows that meet a condition, which is written in SQL."""
        return Selection(self.table, self.columns, f"SELECT * FROM ({self.sql}) WHERE {condition}")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of ``FilterDB``: a column, a relation such as "=" or "max", and values; "max" and "min" have none."""

    column: str
    relation: str
    values: tuple[str, ...] = ()


def read_conditions(text: str) -> list[Condition]:
    """Read the conditions of ``FilterDB``, which are separated by ``||``.

    >>> read_conditions("SUBJECT_ID=7||max(ADMITTIME)")
    [Condition(column='SUBJECT_ID', relation='=', values=('7',)), Condition(column='ADMITTIME', relation='max', values=())]
    """
    return [_read(one) for one in text.split("||")]


def _read(text: str) -> Condition:
    if found := _EXTREME.fullmatch(text):
        return Condition(found[2], found[1].lower())
    if found := _COMPARISON.fullmatch(text):
        if not found[3].strip():
            raise ValueError(f"the condition {text!r} has no value")
        return Condition(found[1], found[2].replace("==", "="), (_unquoted(found[3].strip()),))
    if found := _AMONG.fullmatch(text):
        return Condition(found[1], "in", tuple(_unquoted(one.strip()) for one in found[2].strip().strip("[]()").split(",")))
    raise ValueError(
        f"the condition {text!r} cannot be read: write COLUMN=value, COLUMN<value, COLUMN in [a, b], max(COLUMN) or "
        "min(COLUMN), and || between two conditions"
    )


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def quoted(text: str) -> str:
    """Write a text as a literal of SQL.

    >>> quoted("it's")
    "'it''s'"
    """
    if "\x00" in text:
        raise ValueError("a value has a character that no text may have")
    return "'" + text.replace("'", "''") + "'"


def literal(text: str, *, number: bool) -> str:
    """Write a value as a literal of SQL: as a number if the column holds numbers and the value is one."""
    if number and re.fullmatch(r"[+-]?(\d{1,18}(\.\d{0,18})?|\.\d{1,18})", text):
        return text
    return quoted(text)
