"""Fills the form of a query with the contents of another question: what recurs is the form, and the contents are read anew."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cascade_memory.evaluation.reuse.tables_words import Condition, Mention, Part, conditions

_TOKEN = re.compile(r"""'(?:[^'\\]|''|\\.)*'|"[^"]*"|`[^`]*`|\d+(?:\.\d+)?|\w+|<>|[<>!]=|[^\s;]""")
_AGGREGATES = ("AVG", "SUM", "COUNT", "MAX", "MIN")
_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "SET", "VALUES")
_COMPARISONS = ("=", "<", ">", "<=", ">=", "<>", "!=")
_NEAR = 20  # characters between an aggregate and its column
# Where a question stops to say what to return, and begins to say of which rows.
_ABOUT_ROWS = re.compile(r"\b(?:where|for|that|who|with|whose|of all|along|grouped|have|has|when)\b|[.?]", re.IGNORECASE)
_SUMMED = re.compile(r" (?:sum|total|count|average|difference|range)s?\b", re.IGNORECASE)
_NO_ALIAS = {*_CLAUSES, "ON", "JOIN", "INNER", "LEFT", "CROSS", "USING", "UNION", "AND", "OR"}


@dataclass(frozen=True)
class Asked:
    """A question, what it mentions, and the table that it is about."""

    question: str
    table: str
    columns: Sequence[str]
    found: Sequence[Mention]

    def columns_in(self, part: Part) -> list[str]:
        """Return the columns that a part of the question mentions."""
        return [one.what for one in self.found if one.kind == "column" and one.part == part]

    def first(self, kind: str) -> str | None:
        """Return what is first mentioned of a kind."""
        return next((one.what for one in self.found if one.kind == kind), None)

    def aggregates(self, part: Part | None = None) -> list[tuple[str, str | None]]:
        """Return each aggregate with its column, once, in the order of the question; a count has no column."""
        pairs: list[tuple[str, str | None]] = []
        for place, one in enumerate(self.found):
            if one.kind == "aggregate" and part in (None, one.part):
                column = None if one.what == "COUNT" else self._summed(place)
                if column is not None or one.what == "COUNT":
                    pairs.append((one.what, column))
        return list(dict.fromkeys(pairs))

    def _summed(self, place: int) -> str | None:
        """Return the column of an aggregate: the one right before it, or the next one."""
        one, before = self.found[place], self.found[place - 1] if place else None
        if before is not None and before.kind == "column" and one.at - before.end == 1:
            return before.what
        near = [other for other in self.found[place + 1 : place + 3] if other.at - one.end < _NEAR]
        around = [*near, *(other for other in reversed(self.found[:place]) if other.part == one.part)]
        return next((other.what for other in around if other.kind == "column"), None)

    def listed(self) -> list[str]:
        """Return the columns that are to be returned: those after "return", or else those that the question begins with."""
        end = _ABOUT_ROWS.search(self.question)
        first = len(self.question) if end is None else end.start()
        begins = [one.what for place, one in enumerate(self.found) if one.at < first and self._is_plain(place)]
        return self.plain("returned") or list(dict.fromkeys(begins))

    def plain(self, part: Part) -> list[str]:
        """Return the columns that a part mentions without an aggregate before or after them, each once."""
        names = [one.what for place, one in enumerate(self.found) if one.part == part and self._is_plain(place)]
        return list(dict.fromkeys(names))

    def _is_plain(self, place: int) -> bool:
        one, before = self.found[place], self.found[place - 1] if place else None
        inside = before is not None and (before.kind, before.part) == ("aggregate", one.part) and one.at - before.end < _NEAR
        return one.kind == "column" and not inside and _SUMMED.match(self.question, one.end) is None


def adapted(sql: str, old: Asked, new: Asked) -> str:
    """Adapt a query that answers ``old`` to the question ``new``."""
    tokens = _without_aliases(_TOKEN.findall(sql), old.table)
    if tokens and tokens[0].upper() == "INSERT" and sum(token.lower() == old.table.lower() for token in tokens) == 1:
        return _insertion(new)
    return " ".join(_Filling(old, new).fill(tokens))


def _without_aliases(tokens: Sequence[str], table: str) -> list[str]:
    """Leave out the second names of the table, so that a column is one token."""
    aliases: set[str] = set()
    kept: list[str] = []
    place = 0
    while place < len(tokens):
        kept.append(tokens[place])
        place += 1
        if kept[-1].lower() == table.lower() and len(kept) > 1 and kept[-2].upper() in ("FROM", "JOIN", "UPDATE", "INTO"):
            after = place + 1 if tokens[place : place + 1] and tokens[place].upper() == "AS" else place
            if after < len(tokens) and tokens[after].isidentifier() and tokens[after].upper() not in _NO_ALIAS:
                aliases.add(tokens[after])
                place = after + 1
    aliases.add(table)
    bare: list[str] = []
    skip = False
    for place, token in enumerate(kept):
        if skip:
            skip = False
        elif token in aliases and kept[place + 1 : place + 2] == ["."]:
            skip = True
        else:
            bare.append(token)
    return bare


def _insertion(new: Asked) -> str:
    values = {one.column: one.value for one in conditions(new.found) if one.column is not None}
    return f"INSERT INTO {new.table} ({', '.join(values)}) VALUES ({', '.join(values.values())})"


class _Filling:
    """Fills a form, clause by clause."""

    def __init__(self, old: Asked, new: Asked) -> None:
        self._old, self._new = old, new
        self._said, self._wanted = conditions(old.found), conditions(new.found)
        self._used: set[int] = set()
        self._operators = iter([one.what for one in new.found if one.kind == "compared"])
        self._names = _names(old, new)
        self._pairs = (old.aggregates(), new.aggregates())

    def fill(self, tokens: Sequence[str]) -> list[str]:
        """Return the tokens of the new query."""
        filled: list[str] = []
        plain = [name.lower() for name in self._selected(tokens)]
        for clause, inside in _split(tokens):
            head = inside[: 2 if clause in ("GROUP", "ORDER") else 1] if clause else []
            body = inside[len(head) :]
            filled += head
            if clause == "SELECT":
                filled += self._select(body)
            elif clause == "GROUP" and [one.lower() for one in body if one != ","] == plain and self._new.listed():
                filled += _listed([[name] for name in self._plain(plain)])
            elif clause == "ORDER":
                filled += self._order(body)
            elif clause in ("LIMIT", "OFFSET"):
                filled += self._limit(clause, body)
            else:
                filled += self._body(body, setting=clause == "SET")
        return filled

    def _selected(self, tokens: Sequence[str]) -> list[str]:
        lists = [inside[1:] for clause, inside in _split(tokens) if clause == "SELECT"]
        return [item[0] for item in _items(lists[0]) if self._is_plain(item)] if lists else []

    def _is_plain(self, item: Sequence[str]) -> bool:
        return self._is_column(item[0]) and (len(item) == 1 or item[1].upper() == "AS")

    def _is_column(self, token: str) -> bool:
        return any(token.lower() == name.lower() for name in self._old.columns)

    def _plain(self, old: Sequence[str]) -> list[str]:
        """Return the columns of the new list: those that are to be returned, or else what the old ones become."""
        return self._new.listed() or [self._name(name) for name in old]

    def _select(self, body: Sequence[str]) -> list[str]:
        items = _items(body)
        plain = [item for item in items if self._is_plain(item)]
        sums = [item for item in items if _is_aggregate(item)]
        wanted = self._new.aggregates("returned")
        fresh_sums = [_call(*pair) for pair in wanted] if sums and len(sums) + len(plain) == len(items) else []
        for item, written in zip(sums, fresh_sums, strict=False):
            written += item[item.index(")") + 1 :]  # the name that other clauses may use
        fresh = [[name] for name in self._plain([item[0] for item in plain])] if plain else []
        listed: list[list[str]] = []
        for item in items:
            if self._is_plain(item):
                listed += fresh
                fresh = []
            elif not fresh_sums:
                listed.append(self._body(item))
        return _listed([*listed, *fresh_sums])

    def _order(self, body: Sequence[str]) -> list[str]:
        """Write the order anew from what the question says of it; without that, fill in the old one."""
        terms: list[tuple[str, str]] = []
        waiting: list[str] = []
        aggregate: str | None = None
        for one in self._new.found:
            if one.part != "ordered":
                continue
            if one.kind == "aggregate":
                aggregate = one.what
                if one.what == "COUNT":
                    waiting.append("COUNT(*)")
                    aggregate = None
            elif one.kind == "column":
                waiting.append(one.what if aggregate is None else f"{aggregate}({one.what})")
                aggregate = None
            elif one.kind == "direction":
                terms += [(term, one.what) for term in waiting]
                waiting = []
        terms += [(term, "ASC") for term in waiting]
        if not terms:
            return self._body(body)
        return _listed([[term, direction] for term, direction in dict(terms).items()])

    def _limit(self, clause: str, body: Sequence[str]) -> list[str]:
        number = self._new.first("limit" if clause == "LIMIT" else "offset")
        return [number or body[0], *body[1:]] if body else []

    def _body(self, tokens: Sequence[str], *, setting: bool = False) -> list[str]:
        written: list[str] = []
        place = 0
        while place < len(tokens):
            token = tokens[place]
            after = [one.upper() for one in tokens[place + 1 : place + 4]]
            if token.upper() in _AGGREGATES and after[:1] == ["("] and after[2:3] == [")"]:
                written += self._aggregate(token.upper(), tokens[place + 2])
                place += 4
                continue
            if self._is_column(token) and after[:1] and after[0] in _COMPARISONS and after[1:3] == ["(", "SELECT"]:
                written += self._against(tokens[place : place + 7])
                place += 2
                continue
            if token.lower() == self._old.table.lower():
                written.append(self._new.table)
            elif written[-1:] == ["AS"] or written[-1:] == ["as"]:
                written.append(token)
            elif self._is_column(token):
                written.append(self._name(token))
            elif token[0] in "'\"" or token[0].isdigit():
                self._value(token, written, setting=setting)
            else:
                written.append(token)
            place += 1
        return written

    def _aggregate(self, function: str, name: str) -> list[str]:
        old, new = self._pairs
        column = next((one for one in self._old.columns if one.lower() == name.lower()), None)
        pair = (function, None if function == "COUNT" else column)
        place = old.index(pair) if pair in old else len(new)
        alike = [one for one in new if one[0] == function]
        if alike:
            other = alike[min([one for one in old if one[0] == function].index(pair), len(alike) - 1) if pair in old else 0]
        else:
            other = new[place] if place < len(new) else pair
        if other[0] == "COUNT":
            return ["COUNT", "(", "*", ")"]
        named = other[1] if other in new else None if column is None else self._name(name)
        known = named if named in self._new.columns else next((one[1] for one in new if one[1] is not None), named)
        return [other[0], "(", known or name, ")"]

    def _against(self, tokens: Sequence[str]) -> list[str]:
        """Write a column and the comparison with an aggregate, as in ``price > (SELECT AVG(price)``."""
        own = len(tokens) > 6 and tokens[6].lower() == tokens[0].lower()
        column = self._aggregate(tokens[4].upper(), tokens[6])[2] if own and tokens[4].upper() in _AGGREGATES else None
        operator = next(self._operators, tokens[1])
        return [column or self._name(tokens[0]), operator]

    def _value(self, token: str, written: list[str], *, setting: bool) -> None:
        """Write the value that stands where the old question says the old one, with its column and comparison."""
        bare = token if token[0] == "'" else "'" + token[1:-1] + "'" if token[0] == '"' else token
        places = [
            place for place, one in enumerate(self._said) if one.value.lower() == bare.lower() and place not in self._used
        ]
        if not places or places[0] >= len(self._wanted):
            written.append(token)
            return
        self._used.add(places[0])
        wanted: Condition = self._wanted[places[0]]
        if written and written[-1] in _COMPARISONS:
            if not setting:
                written[-1] = wanted.operator
            if len(written) > 1 and written[-2] in self._new.columns and wanted.column is not None:
                written[-2] = wanted.column
            elif len(written) > 4 and written[-5] in _AGGREGATES and written[-6:-5] != ["-"] and wanted.aggregate is not None:
                counts = "COUNT" in (wanted.aggregate, written[-5] if wanted.column is None else "")
                function = "COUNT" if counts else wanted.aggregate
                written[-5], written[-3] = function, "*" if counts else wanted.column or written[-3]
        written.append(wanted.value)

    def _name(self, token: str) -> str:
        return self._names.get(token.lower(), token)


def _is_aggregate(item: Sequence[str]) -> bool:
    return item[0].upper() in _AGGREGATES and item[3:4] == [")"] and (len(item) == 4 or item[4].upper() == "AS")


def _call(function: str, column: str | None) -> list[str]:
    return [function, "(", column or "*", ")"]


def _names(old: Asked, new: Asked) -> dict[str, str]:
    """Match the old columns with the new ones: those that stand at the same place of the same part, by votes."""
    votes: dict[str, Counter[str]] = {name.lower(): Counter() for name in old.columns}
    parts: tuple[Part, ...] = ("returned", "ordered", "about")
    for part in parts:
        for before, after in zip(old.columns_in(part), new.columns_in(part), strict=False):
            votes[before.lower()][after] += 2
    for before, after in zip(old.columns, new.columns, strict=False):
        votes[before.lower()][after] += 1
    return {name: count.most_common(1)[0][0] for name, count in votes.items() if count}


def _split(tokens: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the clauses of a query; what stands in brackets belongs to the clause around it."""
    clause, inside, depth = "", list[str](), 0
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if depth == 0 and token.upper() in _CLAUSES:
            if inside:
                yield clause, inside
            clause, inside = token.upper(), []
        inside.append(token)
    yield clause, inside


def _items(body: Sequence[str]) -> list[list[str]]:
    """Split a list at its commas outside of brackets."""
    items: list[list[str]] = [[]]
    depth = 0
    for token in body:
        depth += (token == "(") - (token == ")")
        if token == "," and depth == 0:
            items.append([])
        else:
            items[-1].append(token)
    return [item for item in items if item]


def _listed(items: Sequence[Sequence[str]]) -> list[str]:
    return [token for place, item in enumerate(items) for token in ([",", *item] if place else item)]
