"""Finds in a question about a table what a query is made of: columns, values, comparisons, aggregates, directions, limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Part = Literal["about", "returned", "ordered"]
_Kind = Literal["column", "value", "compared", "aggregate", "direction", "limit", "offset"]

_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SMALL = {name: str(number) for number, name in enumerate(_DIGITS)}
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_PLACES = {name: str(number) for number, name in enumerate(_ORDINALS, start=1)}

_NUMBER = rf"\d[\d,]*(?:\.\d+)?|{'|'.join(_SMALL)}"
_PLACE = rf"\d+(?:st|nd|rd|th)|{'|'.join(_PLACES)}"
_ROWS = r"(?:entr|row|result|record|item|match)\w*"
_DATE = rf"(?:{'|'.join(_MONTHS)}) \d{{1,2}}, \d{{4}}|\d{{4}}-\d\d-\d\d"
_SKIP = "(?:skip(?:ping|s)?|after|offset by|offset of|excluding) (?:over )?(?:the )?(?:first )?"
_SKIPPED = rf"{_SKIP}(?P<skipped>{_NUMBER})(?= {_ROWS}|,| and\b)"
_FROM = rf"(?:start(?:ing|s)?|begin(?:ning|s)?) (?:from|at|with) (?:the )?(?P<place>{_PLACE})(?: {_ROWS})?"
_FEWER = r"limit(?:ed|ing)?\b[^.\d']{0,40}?|(?:up to|only|first|next|top|return(?:ing)?) (?:the )?(?:first |next |top )?"
_OR_MORE = r"\bor (?:higher|more|above|greater|later|older|lower|less|below|fewer|earlier|younger)\b"
_THAN = "greater|higher|more|larger|longer|older|later|less|lower|fewer|smaller|shorter|younger|earlier"
_COMPARED = (
    rf"(?:{_THAN}) than(?: or equal to)?|at least|at most|no less than|no more than|on or (?:after|before)|not equal to"
    r"|is not\b|are not\b|other than|exceed(?:s|ing|ed)?|above|over\b|after\b|below|under\b|before\b"
)
_SUMS = r"(?:total )?(?:number|count) of|averages?\b|means?\b|totals?\b|sums?\b|counts?\b|how many"
_MOST = "maximum|highest|largest|minimum|lowest|smallest"
_DIRECTION = (
    "ascending|descending|(?:most recent|newest|latest|oldest|earliest|highest|largest|lowest|smallest) to|alphabetical"
)

# The first pattern that matches at a place decides what is mentioned there. A quoted text is always a value.
_MENTIONS = re.compile(
    rf"(?P<text>'(?:[^']|'(?=\w))*'|\"[^\"]*\")|(?P<offset>{_SKIPPED}|{_FROM})"
    rf"|(?P<limit>(?:{_FEWER})(?P<most>{_NUMBER})(?= (?:\w+ )?{_ROWS}|[.,]|$))|(?P<date>{_DATE})"
    rf"|(?P<compared>{_COMPARED}|{_OR_MORE})|(?P<direction>{_DIRECTION})|(?P<aggregate>{_SUMS}|{_MOST})"
    rf"|(?P<number>\b(?:{_NUMBER})\b%?)",
    re.IGNORECASE,
)
_AGGREGATES = {
    **dict.fromkeys(("average", "mean"), "AVG"),
    **dict.fromkeys(("total", "sum"), "SUM"),
    **dict.fromkeys(("count", "how many"), "COUNT"),
    **dict.fromkeys(("maximum", "highest", "largest"), "MAX"),
    **dict.fromkeys(("minimum", "lowest", "smallest"), "MIN"),
}
# Words of any question; one of them alone names no column.
_SAID_OF_ALL = {"return", "order", "result", "total", "average", "number", "count", "table", "date", "entry", "group"}
_NEXT, _NEAR = 3, 25  # characters
_PARTS = re.compile(
    r"(?P<returned>\breturn(?:ing)?\b)|(?P<ordered>\b(?:order|sort)(?:ed|ing)?\b[^.?]{0,40}?\bby\b)"
    r"|(?P<about>[.?;] (?!return|order|sort))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Mention:
    """What a question says at one place; ``what`` is the name of a column, a literal of SQL, an operator or a keyword."""

    kind: _Kind
    what: str
    at: int
    end: int
    part: Part
    column: str | None = None  # the column of the table that has this text


def mentions(question: str, columns: Sequence[str], stored: Mapping[str, Sequence[str]] | None = None) -> list[Mention]:
    """Return what a question mentions, in the order of its words; ``stored`` are texts in the columns of the table.

    >>> found = mentions("Which pets are older than 3? Return the name, ordered by age descending.", ["name", "age"])
    >>> [(one.kind, one.what, one.part) for one in found][:3]
    [('compared', '>', 'about'), ('value', '3', 'about'), ('column', 'name', 'returned')]
    """
    parts, stored = _parts(question), stored or {}
    quoted = [match.span() for match in _MENTIONS.finditer(question) if match["text"] or match["date"]]
    named = list(_stored(question, stored, quoted))
    taken = quoted + [(at, at + len(value)) for _, value, at in named]
    spans = list(_columns(question, columns, taken))
    owners = {value.lower(): column for column, values in stored.items() for value in values}
    found = [
        Mention(kind, what, at, end, _part_at(parts, at), owners.get(what[1:-1].lower()) if what[0] == "'" else None)
        for kind, what, at, end in _found(question)
        if kind != "aggregate" or not any(start <= at < end for _, start, end in spans)
    ]
    found += [
        Mention("value", _literal(value), at, at + len(value), _part_at(parts, at), column) for column, value, at in named
    ]
    found += [Mention("column", name, start, end, _part_at(parts, start)) for name, start, end in spans]
    return sorted(found, key=lambda one: one.at)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _stored(
    question: str, stored: Mapping[str, Sequence[str]], taken: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, str, int]]:
    """Find texts of the table that a question names without quotes, with their own capital letters; the longest first."""
    texts = {value: column for column, values in stored.items() for value in values if value[:1].isupper() and len(value) > 2}
    done: list[tuple[int, int]] = list(taken)
    for value in sorted(texts, key=len, reverse=True):
        for match in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", question):
            if match.start() and not any(match.start() < end and start < match.end() for start, end in done):
                done.append((match.start(), match.end()))
                yield texts[value], value, match.start()


def _found(question: str) -> Iterator[tuple[_Kind, str, int, int]]:
    for match in _MENTIONS.finditer(question):
        kind, what = _read(match, question)
        yield kind, what, *match.span()


def _read(match: re.Match[str], question: str) -> tuple[_Kind, str]:
    text = match[0].lower()
    if match["text"]:
        return "value", _literal(match[0][1:-1])
    if match["offset"]:
        return "offset", _number(match["skipped"]) if match["skipped"] else str(int(_number(match["place"])) - 1)
    if match["limit"]:
        return "limit", _number(match["most"])
    if match["date"] and text[0].isdigit():
        return "value", f"'{text}'"
    if match["date"]:
        month, day, year = text.replace(",", "").split()
        return "value", f"'{year}-{_MONTHS[month]:02}-{int(day):02}'"
    if match["compared"]:
        return "compared", _operator(text)
    if match["aggregate"]:
        return "aggregate", "COUNT" if text.endswith(" of") else _AGGREGATES.get(text) or _AGGREGATES[text.removesuffix("s")]
    if match["direction"]:
        return "direction", "DESC" if text.startswith(("desc", "most", "new", "late", "high", "larg")) else "ASC"
    return "value", _factor(text, question[: match.start()].lower()) if text.endswith("%") else _number(text)


def _operator(text: str) -> str:
    if text.startswith("or "):
        return ">=" if re.search("higher|more|above|greater|later|older", text) else "<="
    if "not" in text.split() or text == "other than":
        return "<>"
    less = re.search("less|lower|fewer|smaller|shorter|younger|earlier|below|under|before|at most|no more", text)
    equal = re.search("equal|at least|at most|no less|no more|on or", text)
    if text == "no less than":
        return ">="
    return ("<" if less else ">") + ("=" if equal else "")


def _factor(percent: str, before: str) -> str:
    """Return the number by which something is multiplied that a statement raises or lowers by a percentage."""
    share = float(_number(percent)) / 100
    lowers = max(map(before.rfind, ("decreas", "reduc", "lower"))) > max(map(before.rfind, ("increas", "rais")))
    return f"{1 - share if lowers else 1 + share:g}"


def _number(text: str) -> str:
    text = text.lower().rstrip("%")
    known = _SMALL.get(text) or _PLACES.get(text)
    return known or re.sub("st|nd|rd|th|,", "", text)


def _columns(question: str, columns: Sequence[str], taken: Sequence[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """Find columns by all their words, or else by one word that no other column has; long names before short ones."""
    lower, done = question.lower(), list(taken)
    names = [(name, name.lower().split("_")) for name in columns]
    whole = [(name, r"\W".join(map(re.escape, words))) for name, words in names]
    whole += [(name, re.escape(name.lower())) for name in columns]
    whole += [(name, r"\W".join(map(re.escape, reversed(words)))) for name, words in names if len(words) == 2]
    alone: list[tuple[str, str]] = []
    for name, words in names:
        others = {word for other, those in names if other != name for word in those}
        alone += [(name, re.escape(word)) for word in words if len(word) > 2 and word not in others | _SAID_OF_ALL]
    if columns and columns[0].lower().endswith("id"):
        alone.append((columns[0], "id"))
    for tried, apart in ((whole, 0), (alone, 2)):  # one word beside another column is a part of what that one is called
        for name, pattern in sorted(tried, key=lambda one: -len(one[1])):
            for match in re.finditer(rf"\b{pattern}(?:e?s)?\b", lower):
                start, end = match.span()
                if not any(start < other_end + apart and other_start < end + apart for other_start, other_end in done):
                    done.append((start, end))
                    yield name, start, end


def _parts(question: str) -> list[tuple[int, Part]]:
    found: list[tuple[int, Part]] = [(0, "about")]
    for match in _PARTS.finditer(question):
        part: Part = "returned" if match["returned"] else "ordered" if match["ordered"] else "about"
        found.append((match.start(), part))
    return found


def _part_at(parts: Sequence[tuple[int, Part]], at: int) -> Part:
    return next(part for start, part in reversed(parts) if start <= at)


@dataclass(frozen=True, slots=True)
class Condition:
    """A value that a question names, with the column and the comparison that belong to it."""

    column: str | None
    operator: str
    value: str
    aggregate: str | None = None


def conditions(found: Sequence[Mention]) -> list[Condition]:
    """Return a condition for each value that a question mentions.

    The column is the one right after the value ("an 'open' status"), or the nearest one before it with no other value between,
    or the one that has this text.

    >>> found = mentions("Delete the pets with an age above 9 and the name 'Rex'.", ["name", "age"])
    >>> [(one.column, one.operator, one.value) for one in conditions(found)]
    [('age', '>', '9'), ('name', '=', "'Rex'")]
    """
    return [_condition(found, place) for place, one in enumerate(found) if one.kind == "value"]


def _condition(found: Sequence[Mention], place: int) -> Condition:
    one, operator, column, aggregate = found[place], "=", None, None
    for before in reversed(found[:place]):
        if column is not None or before.kind == "value":
            if before.kind == "aggregate":
                aggregate = before.what
            break
        if before.kind == "aggregate":
            aggregate = before.what
            break  # its column would stand after it
        if before.kind == "compared" and operator == "=":
            operator = before.what
        if before.kind == "column":
            near = one.column is None or one.at - before.end < _NEAR
            column = before.what if near else one.column
    after = found[place + 1] if place + 1 < len(found) else None
    if after is not None and after.kind == "column" and after.at - one.end == 1:
        alone = not place or found[place - 1].kind == "value"
        if one.what[0] == "'" or alone:
            column = after.what  # "an 'open' status", "and 1500 likes"
    if after is not None and after.kind == "compared" and after.at - one.end < _NEXT and operator == "=":
        operator = after.what  # "4 or higher"
    return Condition(column or one.column, operator, one.what, aggregate)
