"""Adapts a query to another question: its tables and columns, and its values, become those that the question mentions.

A query is split into tokens as far as needed for this, and the schema of the database is read.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Literal

from cascade_memory.domain import connect

_TOKEN = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|`[^`]*`|\d+(?:\.\d+)?|\w+|[<>!]=|<>|\S""")
_SETS = {"union", "intersect", "except"}
_MOST_TABLES = 3  # for up to this many tables, all combinations are tried
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: str(number) for number, word in enumerate(_DIGITS)}
_QUOTED = re.compile(r""""([^"]+)"|'([^']+)'(?!\w)""")
_CAPITALISED = re.compile(r"(?<=[\w,] )[A-Z][\w.-]*\w(?: [A-Z][\w.-]*\w)*")
Values = Callable[[str, str], Sequence[str]]  # (table, column) -> its values


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a query. For a name, ``table`` and ``column`` say what it refers to in the schema."""

    text: str
    role: Literal["table", "column", "text", "number", "other"] = "other"
    table: str = ""
    column: str = ""


def read_sql(sql: str, schema: Schema) -> list[Token]:
    """Parse a query on a database.

    >>> from cascade_memory.evaluation.reuse.sql_queries import Column
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


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a database."""

    question: str
    schema: Schema


def renamed(tokens: Sequence[Token], old: Asked, new: Asked) -> list[Token] | None:
    """Return a query with the names that fit another question best; None if the database does not have enough tables.

    A name stays, or is replaced by a similar one, unless the new question mentions another name in its place. The tables should
    be joined as before. A column that the old question did not mention, such as a key, should keep its role.
    """
    used = list(dict.fromkeys(token.table for token in tokens if token.table))
    joined = [(tokens[left], tokens[right]) for left, right in joins(tokens)]
    tables = _tables(used, {(left.table, right.table) for left, right in joined}, old, new)
    if tables is None:
        return None
    columns = _columns(tokens, tables, old, new)
    for left, right in joined:
        link = new.schema.link(tables[left.table], tables[right.table])
        if link is not None:
            columns[left.table, left.column], columns[right.table, right.column] = link
    return [_renamed(token, tables, columns) for token in tokens]


def _tables(used: Sequence[str], joined: set[tuple[str, str]], old: Asked, new: Asked) -> dict[str, str] | None:
    if len(used) > _MOST_TABLES:
        return {table: table for table in used} if all(table in new.schema.tables for table in used) else None
    before, asked = words(old.question), words(new.question)
    gone = {table: _more(table, asked, before) if table in new.schema.tables else 1.0 for table in used}

    def score(chosen: Sequence[str]) -> float:
        to = dict(zip(used, chosen, strict=True))
        linked = sum(new.schema.link(to[left], to[right]) is not None for left, right in joined)
        return linked + sum(2 * gone[here] * _more(there, before, asked) + alike(here, there) for here, there in to.items())

    ways = list(permutations(new.schema.tables, len(used)))
    return dict(zip(used, max(ways, key=score), strict=True)) if ways else None


def _columns(tokens: Sequence[Token], tables: Mapping[str, str], old: Asked, new: Asked) -> dict[tuple[str, str], str]:
    before, asked = words(old.question), words(new.question)
    pairs: list[tuple[float, str, str, str]] = []
    for table, column in dict.fromkeys((token.table, token.column) for token in tokens if token.column):
        about, spoken = old.schema.tables[table][column], mentioned(column, before)
        choice = new.schema.tables[tables[table]]
        gone = _more(column, asked, before) if column in choice else spoken
        for other, there in choice.items():
            fit = 1.5 * alike(column, other) + 2 * gone * _more(other, before, asked)
            fit += 0.5 * (about.numeric == there.numeric) + (about.key == there.key) * (1 - spoken)
            pairs.append((fit, table, column, other))
    chosen: dict[tuple[str, str], str] = {}
    for _, table, column, other in sorted(pairs, key=lambda pair: -pair[0]):
        taken = {to for (of, _), to in chosen.items() if of == table}
        if (table, column) not in chosen and other not in taken:
            chosen[table, column] = other
    return chosen


def _more(name: str, one: set[str], other: set[str]) -> float:
    """Compute by how much more the question ``other`` mentions a name than the question ``one`` does; at least 0."""
    return max(0.0, mentioned(name, other) - mentioned(name, one))


def _renamed(token: Token, tables: Mapping[str, str], columns: Mapping[tuple[str, str], str]) -> Token:
    if token.role == "table":
        return replace(token, text=f"`{tables[token.table]}`", table=tables[token.table])
    if token.role == "column":
        column = columns.get((token.table, token.column), token.column)
        return replace(token, text=f"`{column}`", table=tables[token.table], column=column)
    return token


def revalued(tokens: Sequence[Token], old: str, new: str, values: Values) -> list[Token]:
    """Return a query with the numbers and texts of another question.

    A value stays if the old question does not contain it, or if the new one contains it too. Any other number is replaced by
    the next number in the new question. Any other text is replaced by a value of its column that the new question contains,
    or otherwise by the next name in the new question.
    """
    numbers = iter([number for number in numbers_in(new) if number not in numbers_in(old)])
    names = iter([name for name in names_in(new) if not _says(old, name)])
    gone = set(numbers_in(old)) - set(numbers_in(new))
    written: list[Token] = []
    for place, token in enumerate(tokens):
        if token.role == "number" and token.text in gone:
            written.append(replace(token, text=next(numbers, token.text)))
        elif token.role == "text" and (bare := token.text[1:-1].strip("%")) and _says(old, bare) and not _says(new, bare):
            column = _column(tokens, place)
            stored = values(column.table, column.column) if column is not None else ()
            named = [value for value in stored if _says(new, value) and not _says(old, value)]
            value = max(named, key=len) if named else next(names, bare)
            written.append(replace(token, text="'" + token.text[1:-1].replace(bare, value).replace("'", "''") + "'"))
        else:
            written.append(token)
    return written


def _says(question: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", question, re.IGNORECASE) is not None


def _column(tokens: Sequence[Token], place: int) -> Token | None:
    """Return the column that a value is compared with: the nearest one before it."""
    return next((token for token in reversed(tokens[max(0, place - 6) : place]) if token.role == "column"), None)


def numbers_in(question: str) -> list[str]:
    """Find the numbers in a question.

    >>> numbers_in("Which three singers are older than 20?")
    ['3', '20']
    """
    found = [match.group() for match in re.finditer(r"\d+(?:\.\d+)?|[a-z]+", question.lower())]
    return [_NUMBERS.get(word) or word for word in found if word in _NUMBERS or word[0].isdigit()]


def names_in(question: str) -> list[str]:
    """Find the quoted texts in a question, and capitalised words that do not begin a sentence.

    >>> names_in('Who from New York sings "Love"? Does Ann?')
    ['Love', 'New York', 'Ann']
    """
    quoted = [found.group()[1:-1] for found in _QUOTED.finditer(question)]
    return quoted + [found.group() for found in _CAPITALISED.finditer(_QUOTED.sub("", question))]
