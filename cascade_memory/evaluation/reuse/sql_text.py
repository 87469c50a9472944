"""Splits a query into tokens and classifies them, as far as needed to replace names and values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cascade_memory.evaluation.reuse.sql_schema import Schema

_TOKEN = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|`[^`]*`|\d+(?:\.\d+)?|\w+|[<>!]=|<>|\S""")
_SETS = {"union", "intersect", "except"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a query. For a name, ``table`` and ``column`` say what it refers to in the schema."""

    text: str
    role: Literal["table", "column", "text", "number", "other"] = "other"
    table: str = ""
    column: str = ""


def read_sql(sql: str, schema: Schema) -> list[Token]:
    """Parse a query on a database.

    >>> from cascade_memory.evaluation.reuse.sql_schema import Column
    >>> schema = Schema({"pet": {"age": Column(numeric=True, key=False)}})
    >>> tokens = read_sql("SELECT max(T1.age) FROM pet AS T1 WHERE T1.age < 9", schema)
    >>> [token.role for token in tokens if token.role != "other"]
    ['column', 'table', 'column', 'number']
    """
    read: list[Token] = []
    part: list[str] = []
    for text in [*_TOKEN.findall(sql.strip().rstrip(";")), ""]:
        if not text or text.lower() in _SETS:  # each part of a UNION, for example, has its own names
            read += _part(part, schema)
            read += [Token(text)] if text else []
            part = []
        else:
            part.append(text)
    return read


def _part(texts: Sequence[str], schema: Schema) -> list[Token]:
    names = [text.strip('`"').lower() for text in texts]
    tables: dict[str, str] = {}  # alias -> table
    for place, name in enumerate(names):
        if place and names[place - 1] in ("from", "join") and name in schema.tables:
            tables[name] = name
            if names[place + 1 : place + 2] == ["as"]:
                tables[names[place + 2]] = name
    return [_token(place, texts[place], names, tables, schema) for place in range(len(texts))]


def _token(place: int, text: str, names: Sequence[str], tables: dict[str, str], schema: Schema) -> Token:
    name, before = names[place], names[place - 1] if place else ""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return Token(text, "number")
    if before == "." and place > 1:
        owners = [tables.get(names[place - 2], "")]
    elif before == "as":
        owners = []
    else:
        owners = list(dict.fromkeys(tables.values()))
    is_table = before in ("from", "join") or names[place + 1 : place + 2] == ["."]
    if is_table and name in schema.tables:
        return Token(text, "table", table=name)
    owner = next((one for one in owners if name in schema.tables.get(one, {})), None)
    if owner is not None and not is_table and text[0] != "'":
        return Token(text, "column", table=owner, column=name)
    return Token(text, "text") if text[0] in "'\"" else Token(text)


def joins(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Return pairs of positions: two columns of different tables that the query compares for equality."""
    places: list[tuple[int, int]] = []
    for place, token in enumerate(tokens):
        if token.text == "=" and place and tokens[place - 1].role == "column":
            right = next((other for other in (place + 1, place + 3) if _is_column(tokens, other)), None)
            if right is not None and tokens[right].table != tokens[place - 1].table:
                places.append((place - 1, right))
    return places


def _is_column(tokens: Sequence[Token], place: int) -> bool:
    return place < len(tokens) and tokens[place].role == "column"
