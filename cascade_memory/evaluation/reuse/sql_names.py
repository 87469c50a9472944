"""Replaces the tables and columns of a query by those that another question mentions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from cascade_memory.evaluation.reuse.sql_schema import Schema, alike, mentioned, words
from cascade_memory.evaluation.reuse.sql_text import Token, joins

_MOST_TABLES = 3  # for up to this many tables, all combinations are tried


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
