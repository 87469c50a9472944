"""Reads the schema of a database: its tables, their columns, and their references to each other."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cascade_memory.domain import connect


@dataclass(frozen=True, slots=True)
class Column:
    """A column: whether it is a number, and whether it identifies its row."""

    numeric: bool
    key: bool


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables by name; all names are in lower case."""

    tables: Mapping[str, Mapping[str, Column]]
    references: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict[tuple[str, str], tuple[str, str]])

    def link(self, one: str, other: str) -> tuple[str, str] | None:
        """Return the columns by which two tables are joined, in either direction of the reference.

        >>> Schema({}, {("pet", "owner"): ("id", "pet_id")}).link("owner", "pet")
        ('pet_id', 'id')
        """
        if (one, other) in self.references:
            return self.references[one, other]
        back = self.references.get((other, one))
        return None if back is None else (back[1], back[0])


def read_schema(database: Path) -> Schema:
    """Read the schema of a file."""
    with contextlib.closing(connect(database, "immutable=1")) as file:
        names = [str(row[0]) for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        tables: dict[str, dict[str, Column]] = {}
        references: dict[tuple[str, str], tuple[str, str]] = {}
        for name in names:
            rows = file.execute("SELECT name, type, pk FROM pragma_table_info(?)", (name,)).fetchall()
            tables[name.lower()] = {str(column).lower(): Column(_numeric(str(kind)), bool(key)) for column, kind, key in rows}
        for name in names:
            for target, here, there in file.execute('SELECT "table", "from", "to" FROM pragma_foreign_key_list(?)', (name,)):
                other = str(target).lower()
                keys = [column for column, about in tables.get(other, {}).items() if about.key]
                if there or keys:  # a reference without a column name means the primary key
                    references.setdefault((name.lower(), other), (str(here).lower(), str(there or keys[0]).lower()))
    return Schema(tables, references)


def _numeric(kind: str) -> bool:
    return bool(re.search(r"int|real|num|float|double|dec|year", kind, re.IGNORECASE))


def words(text: str) -> set[str]:
    """Split a name or a sentence into words; a plural ending is removed by a simple rule.

    >>> sorted(words("Which concertSinger has 2 pet_ids?"))
    ['2', 'concert', 'ha', 'id', 'pet', 'singer', 'which']
    """
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text)
    return {_singular(part.lower()) for part in parts}


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word


def mentioned(name: str, sentence: set[str]) -> float:
    """Compute the share of a name's words that occur in a sentence.

    >>> mentioned("pet_age", words("How old is each pet?"))
    0.5
    """
    parts = words(name)
    return len(parts & sentence) / max(1, len(parts))


def alike(one: str, other: str) -> float:
    """Compute the share of words that two names have in common."""
    left, right = words(one), words(other)
    return 1.0 if one == other else len(left & right) / max(1, len(left | right))
