"""Translates ``where={...}`` into SQL over the field tables, and refuses a filter that no database could carry out in time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from cascade_memory.domain.display import quoted
from cascade_memory.domain.validation import MAX_ID_CHARS, MAX_SOLUTION_CHARS, check_text, exact
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.database import Connection
from cascade_memory.ledger.rows import KEYS, fetched_for

_MAX_DEPTH = 16
_MAX_CONDITIONS = 200  # SQLite joins up to a thousand, and each is a search of its own
_MAX_OPTIONS = 10_000  # values, of all conditions together
_MAX_CHARS = 4 * MAX_SOLUTION_CHARS
_INT64 = 2**63
_EXAMPLE = 'for example {"tool": "search"} or {"$and": [{"tool": "search"}, {"steps": {"$lte": 5}}]}'
Where: TypeAlias = "Mapping[str, Any]"
_COMPARE = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
# PostgreSQL joins what must all hold, and takes minutes to plan hundreds of joins. So it joins the first conditions, and the
# others are asked of each row that is left. What is denied, or one of several choices, it never joins.
_JOINED = 4
_COMPARED = 16  # values of a recall's metadata, with those of each candidate


def plain_filter(where: object) -> dict[str, Any]:
    """Return a filter as plain dicts, lists and values; raise if it is no filter, or too large.

    >>> plain_filter({"$or": ({"tool": "search"}, {"steps": {"$in": (1, 2)}})})
    {'$or': [{'tool': 'search'}, {'steps': {'$in': [1, 2]}}]}
    """
    return _Reading().conditions(where, 0)


def plain_value(value: object) -> str | int | float | bool:
    """Return a value of a filter as a plain str, int, float or bool; raise if no filter can compare with it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return check_text(value, "a value in where", MAX_SOLUTION_CHARS, allow_empty=True)
    number = exact(value)
    if number is None:
        raise InvalidInput(f"cannot filter by {quoted(value)}; compare with str, int, float or bool")
    if number != number:
        raise InvalidInput("where compares with nan, which equals nothing; leave that condition out")
    if isinstance(number, int) and not -_INT64 <= number < _INT64:
        raise InvalidInput("where compares with an integer beyond 64 bits, and no stored integer is that large")
    return number


class _Reading:
    """Reads a filter, and counts its conditions, values and characters on the way."""

    def __init__(self) -> None:
        self._conditions = self._options = self._chars = 0

    def conditions(self, where: object, depth: int) -> dict[str, Any]:
        if not isinstance(where, Mapping):
            raise InvalidInput(f"where must be a non-empty mapping, {_EXAMPLE}")
        if depth > _MAX_DEPTH:
            raise InvalidInput(f"where is nested more than {_MAX_DEPTH} deep")
        found: dict[str, Any] = {}
        for key, wanted in cast("Mapping[object, object]", where).items():
            self._count()
            if not isinstance(key, str):
                raise InvalidInput(f"where has the unknown key {quoted(key)}; {_EXAMPLE}")
            name = check_text(key, "a name in where", MAX_ID_CHARS)
            if name in ("$and", "$or"):
                found[name] = [self.conditions(one, depth + 1) for one in self._listed(wanted, name)]
            elif name.startswith("$"):
                raise InvalidInput(f"where has the unknown key {name!r}; {_EXAMPLE}")
            else:
                found[name] = self._on_field(wanted)
        if not found:
            raise InvalidInput(f"where must be a non-empty mapping, {_EXAMPLE}")
        return found

    def _on_field(self, wanted: object) -> Any:
        if not isinstance(wanted, Mapping):
            return self._value(wanted)
        found: dict[str, Any] = {}
        for operator, operand in cast("Mapping[object, object]", wanted).items():
            self._count()
            name = check_text(operator, "an operator in where", MAX_ID_CHARS)
            many = name in ("$in", "$nin")
            found[name] = [self._value(one) for one in self._listed(operand, name)] if many else self._value(operand)
        return found

    def _listed(self, options: object, operator: str) -> list[Any]:
        if not isinstance(options, (list, tuple)) or not (some := list(itertools.islice(options, _MAX_OPTIONS + 1))):
            raise InvalidInput(f"{operator} takes a non-empty list, {_EXAMPLE}")
        return some

    def _value(self, value: object) -> str | int | float | bool:
        plain = plain_value(value)
        self._options += 1
        self._chars += len(plain) if isinstance(plain, str) else 0
        if self._options > _MAX_OPTIONS:
            raise InvalidInput(f"where takes at most {_MAX_OPTIONS:,} values; filter by fewer, or in several calls")
        if self._chars > _MAX_CHARS:
            raise InvalidInput(f"where takes values of {_MAX_CHARS:,} characters in all; filter by shorter ones")
        return plain

    def _count(self) -> None:
        self._conditions += 1
        if self._conditions > _MAX_CONDITIONS:
            raise InvalidInput(f"where takes at most {_MAX_CONDITIONS} conditions; $in compares with many values at once")


def encode_value(value: object) -> str | int | float | bytes:
    r"""Return a metadata value as SQLite stores it; booleans become blobs, so that True does not equal 1.

    >>> encode_value(True), encode_value(1)
    (b'\x01', 1)
    """
    return _encoded(plain_value(value))


def _encoded(plain: str | int | float | bool) -> str | int | float | bytes:
    """Return a metadata value that was checked as SQLite stores it."""
    return plain if not isinstance(plain, bool) else b"\x01" if plain else b"\x00"


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A metadata value in a field table; each database stores it in its own way."""

    value: str | int | float | bytes

    def __conform__(self, protocol: object) -> str | int | float | bytes:
        """Return the value as SQLite stores it; SQLite asks for this."""
        del protocol
        return self.value


@dataclass(frozen=True, slots=True)
class Filtered:
    """A kind of rows to filter by metadata.

    ``fields`` is the table of their metadata, ``ref`` the column there that holds the key of the row, and ``every`` a query for
    the keys of those rows of a namespace that a filter may return.
    """

    fields: str
    ref: str
    every: str


CASES = Filtered("field", "cases_key", "SELECT key FROM cases WHERE namespace = ?")
EXPIRED_CASES = Filtered("expired_field", "expired", "SELECT key FROM expired WHERE namespace = ?")
OUTCOMES = Filtered(
    "outcome_field",
    "outcome",
    """SELECT key FROM outcome WHERE namespace = ? AND withdrawn_at IS NULL
       AND (cases_key IS NOT NULL OR EXISTS (SELECT 1 FROM outcome_field WHERE outcome_field.outcome = outcome.key))""",
)
ADDITIONS = Filtered("addition_field", "addition", "SELECT key FROM addition WHERE namespace = ?")
EPISODES = Filtered("episode_field", "episode", "SELECT DISTINCT episode AS key FROM episode_field WHERE namespace = ?")


def keep_fields(connection: Connection, of: Filtered, namespace: int, ref: int, metadata: Mapping[str, Any]) -> None:
    """Store metadata a second time, one row per value, so that filters can find it."""
    for name, value in values_in(metadata) if metadata else ():
        connection.execute(f"INSERT INTO {of.fields} VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (namespace, name, value, ref))


def values_in(metadata: Mapping[str, Any]) -> Iterator[tuple[str, FieldValue]]:
    """Yield the name of a field and a value, as they are stored in one row: a list has a row for each item.

    >>> list(values_in({"tool": "search", "tags": ["a", "b"]}))
    [('tool', FieldValue(value='search')), ('tags', FieldValue(value='a')), ('tags', FieldValue(value='b'))]
    """
    for name, value in metadata.items():
        for one in cast("list[object]", value) if isinstance(value, list) else [value]:
            yield name, FieldValue(encode_value(one))


def shares_of(connection: Connection, namespace: int, cases: Sequence[int], metadata: Mapping[str, Any]) -> dict[int, float]:
    """Return which share of some metadata each case has as well, if it has any; each item of a list is one value.

    Only the first values are compared, so that a recall takes no longer because it brings many.
    """
    asked = list(itertools.islice(values_in(metadata), _COMPARED))
    names, values = {name for name, _ in asked}, [value for _, value in asked]
    # The lists lead to single rows of the index. The pairs leave out another field that has the same value.
    query = f"""SELECT {CASES.ref}, count(*) FROM {CASES.fields} WHERE {CASES.ref} IN ({KEYS}) AND namespace = ?
                AND name IN ({",".join("?" * len(names))}) AND value IN ({",".join("?" * len(values))})
                AND ({" OR ".join(["(name = ? AND value = ?)"] * len(asked))}) GROUP BY {CASES.ref}"""
    pairs = itertools.chain.from_iterable(asked)
    rows = fetched_for(connection, query, cases, namespace, *names, *values, *pairs)
    return {key: count / len(asked) for key, count in rows}


def kept_fields(connection: Connection, of: Filtered, ref: int) -> dict[str, Any]:
    """Rebuild metadata from its rows: the order of several values is lost, and a list of one value becomes that value."""
    fields: dict[str, list[Any]] = {}
    for name, value in connection.execute(f"SELECT name, value FROM {of.fields} WHERE {of.ref} = ?", (ref,)):
        fields.setdefault(name, []).append(bool(value[0]) if isinstance(value, bytes) else value)
    return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}


def compile_where(where: object, namespace: int, of: Filtered = CASES) -> tuple[str, list[Any]]:
    """Build a query for the keys of all matching rows (by default cases), ascending; return it with its parameters.

    Takes Chroma's operators ``$eq $ne $gt $gte $lt $lte $in $nin $and $or``; as in Chroma, ``$ne`` and ``$nin`` also match
    rows that lack the key.

    >>> compile_where({"steps": {"$lte": 5}}, 1)[1]
    [1, 'steps', FieldValue(value=5)]
    """
    where = plain_filter(where)
    condition, values = _condition(where, namespace, "key", of)
    first = _first_field(where)
    if first is None:
        return f"SELECT key FROM ({of.every}) AS every WHERE {condition} ORDER BY key", [namespace, *values]
    # Begin with the rows of one field, which are stored together in the order of their keys, and check the rest for each row.
    name, operator, operand = first
    sql, some = _operation(operator, operand)
    query = f"SELECT DISTINCT {of.ref} AS key FROM {of.fields} WHERE namespace = ? AND name = ? AND {sql}"
    values = [namespace, name, *some]
    if rest := _without_field(where, name, operator):
        condition, more = _condition(rest, namespace, f"{of.fields}.{of.ref}", of)
        query, values = f"{query} AND {condition}", [*values, *more]
    return f"{query} ORDER BY {of.ref}", values


def _first_field(where: Where) -> tuple[str, str, object] | None:
    """Return (field, operator, operand) of a condition at the top level that is not a negation; None if there is none.

    Every match must meet this condition.
    """
    for key, wanted in where.items():
        if not key.startswith("$"):
            operations = cast("Mapping[str, object]", wanted) if isinstance(wanted, Mapping) else {"$eq": wanted}
            for operator, operand in operations.items():
                if operator not in ("$ne", "$nin"):
                    return key, operator, operand
    return None


def _without_field(where: Where, name: str, operator: str) -> dict[str, Any]:
    """Return the filter without the condition that ``_first_field`` found."""
    rest = dict(where)
    wanted = rest.pop(name)
    if isinstance(wanted, Mapping):
        others = {key: value for key, value in cast("Mapping[str, object]", wanted).items() if key != operator}
        if others:
            rest[name] = others
    return rest


def _condition(where: Where, namespace: int, column: str, of: Filtered, *, joined: bool = True) -> tuple[str, list[Any]]:
    parts: list[str] = []
    values: list[Any] = []
    for number, (key, wanted) in enumerate(where.items()):
        compiled = _all_or_any if key in ("$and", "$or") else _on_field
        sql, some = compiled(key, wanted, namespace, column, of, joined=joined and number < _JOINED)
        parts.append(sql)
        values += some
    return "(" + " AND ".join(parts) + ")", values


def _all_or_any(
    key: str, wanted: Sequence[Where], namespace: int, column: str, of: Filtered, *, joined: bool
) -> tuple[str, list[Any]]:
    chosen = key == "$or" and len(wanted) > 1
    compiled = [
        _condition(one, namespace, column, of, joined=chosen or (joined and number < _JOINED))
        for number, one in enumerate(wanted)
    ]
    whole = (" AND " if key == "$and" else " OR ").join(sql for sql, _ in compiled)
    return f"({whole})", [value for _, some in compiled for value in some]


def _on_field(name: str, wanted: Any, namespace: int, column: str, of: Filtered, *, joined: bool) -> tuple[str, list[Any]]:
    parts: list[str] = []
    values: list[Any] = []
    for operator, operand in cast("Where", wanted if isinstance(wanted, dict) else {"$eq": wanted}).items():
        sql, some = _operation(operator, operand)
        compared = sql.replace("value", "f.value")
        inner = f"FROM {of.fields} AS f WHERE f.namespace = ? AND f.name = ? AND {compared}"
        denied = operator in ("$ne", "$nin")
        if joined or denied:
            parts.append(f"{column} {'NOT ' if denied else ''}IN (SELECT f.{of.ref} {inner})")
        else:
            parts.append(f"EXISTS (SELECT 1 {inner} AND f.{of.ref} = {column}) IS TRUE")
        values += [namespace, name, *some]
    if not parts:
        raise InvalidInput(f"where has no condition for {name!r}: compare it with a value")
    return "(" + " AND ".join(parts) + ")", values


def _operation(operator: str, operand: Any) -> tuple[str, list[Any]]:
    if operator in ("$eq", "$ne"):
        return "value = ?", [FieldValue(_encoded(operand))]
    if operator in ("$in", "$nin"):
        options = [FieldValue(_encoded(one)) for one in operand]
        return f"value IN ({','.join('?' * len(options))})", options
    if operator in _COMPARE:
        if isinstance(operand, bool):
            raise InvalidInput(f"{operator} compares with a number or a string, not with {operand!r}")
        kinds = "('text')" if isinstance(operand, str) else "('integer', 'real')"
        return f"value {_COMPARE[operator]} ? AND typeof(value) IN {kinds}", [FieldValue(_encoded(operand))]
    raise InvalidInput(f"where has the unknown operator {quoted(operator)}; use $eq $ne $gt $gte $lt $lte $in $nin")
