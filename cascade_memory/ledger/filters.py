"""Translates ``where={...}`` into SQL over the field tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from cascade_memory.domain.validation import MAX_SOLUTION_CHARS, check_text
from cascade_memory.errors import InvalidInput
from cascade_memory.ledger.database import Connection

Where: TypeAlias = "Mapping[str, Any]"
_COMPARE = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_MAX_DEPTH = 16
_MAX_OPTIONS = 10_000
_EXAMPLE = 'for example {"tool": "search"} or {"$and": [{"tool": "search"}, {"steps": {"$lte": 5}}]}'


def encode_value(value: object) -> str | int | float | bytes:
    r"""Return a metadata value as SQLite stores it; booleans become blobs, so that True does not equal 1.

    >>> encode_value(True), encode_value(1)
    (b'\x01', 1)
    """
    if isinstance(value, bool):
        return b"\x01" if value else b"\x00"
    if isinstance(value, str):
        return check_text(value, "a value in where", MAX_SOLUTION_CHARS, allow_empty=True)
    if isinstance(value, float) and value != value:
        raise InvalidInput("where compares with nan, which equals nothing; leave that condition out")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidInput("where compares with an integer beyond 64 bits, and no stored integer is that large")
    if isinstance(value, (int, float)):
        return value
    raise InvalidInput(f"cannot filter by a {type(value).__name__}; compare with str, int, float or bool")


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
    """What is filtered: the table of its metadata, the column there that refers to it, and a query for all its keys."""

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
    for name, value in metadata.items():
        for one in cast("list[object]", value) if isinstance(value, list) else [value]:
            values = (namespace, name, FieldValue(encode_value(one)), ref)
            connection.execute(f"INSERT INTO {of.fields} VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", values)


def kept_fields(connection: Connection, of: Filtered, ref: int) -> dict[str, Any]:
    """Rebuild metadata from its rows: the order of several values is lost, and a list of one value becomes that value."""
    fields: dict[str, list[Any]] = {}
    for name, value in connection.execute(f"SELECT name, value FROM {of.fields} WHERE {of.ref} = ?", (ref,)):
        fields.setdefault(name, []).append(bool(value[0]) if isinstance(value, bytes) else value)
    return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}


def compile_where(where: object, namespace: int, of: Filtered = CASES) -> tuple[str, list[Any]]:
    """Build a query for the keys of all matching rows (by default cases), ascending; return it with its parameters.

    Takes Chroma's operators ``$eq $ne $gt $gte $lt $lte $in $nin $and $or``; as there, ``$ne`` and ``$nin`` also match cases
    that lack the key.

    >>> compile_where({"steps": {"$lte": 5}}, 1)[1]
    [1, 'steps', FieldValue(value=5)]
    """
    condition, values = _condition(where, namespace, 0, "key", of)
    first = _first_field(where)
    if first is None:
        return f"SELECT key FROM ({of.every}) AS every WHERE {condition} ORDER BY key", [namespace, *values]
    # Begin with the rows of one field, which are stored together in the order of their keys, and check the rest for each row.
    name, operator, operand = first
    sql, some = _operation(operator, operand)
    query = f"SELECT DISTINCT {of.ref} AS key FROM {of.fields} WHERE namespace = ? AND name = ? AND {sql}"
    values = [namespace, name, *some]
    if rest := _without_field(where, name, operator):
        condition, more = _condition(rest, namespace, 0, f"{of.fields}.{of.ref}", of)
        query, values = f"{query} AND {condition}", [*values, *more]
    return f"{query} ORDER BY {of.ref}", values


def _first_field(where: object) -> tuple[str, str, object] | None:
    """Find a positive condition on a field that every match must meet, if there is one at the top level."""
    for key, wanted in cast("Mapping[str, object]", where).items():
        if not key.startswith("$"):
            operations = cast("Mapping[str, object]", wanted) if isinstance(wanted, Mapping) else {"$eq": wanted}
            for operator, operand in operations.items():
                if operator not in ("$ne", "$nin"):
                    return key, operator, operand
    return None


def _without_field(where: object, name: str, operator: str) -> dict[str, object]:
    """Return the filter without the condition that ``_first_field`` found."""
    rest = dict(cast("Mapping[str, object]", where))
    wanted = rest.pop(name)
    if isinstance(wanted, Mapping):
        others = {key: value for key, value in cast("Mapping[str, object]", wanted).items() if key != operator}
        if others:
            rest[name] = others
    return rest


def _condition(where: object, namespace: int, depth: int, column: str, of: Filtered) -> tuple[str, list[Any]]:
    if not isinstance(where, Mapping) or not where:
        raise InvalidInput(f"where must be a non-empty mapping, {_EXAMPLE}")
    if depth > _MAX_DEPTH:
        raise InvalidInput(f"where is nested more than {_MAX_DEPTH} deep")
    parts: list[str] = []
    values: list[Any] = []
    for key, wanted in cast("Mapping[object, object]", where).items():
        if key in ("$and", "$or"):
            sql, some = _all_or_any(str(key), wanted, namespace, depth, column, of)
        elif isinstance(key, str) and not key.startswith("$"):
            sql, some = _on_field(key, wanted, namespace, column, of)
        else:
            raise InvalidInput(f"where has the unknown key {key!r}; {_EXAMPLE}")
        parts.append(sql)
        values += some
    return "(" + " AND ".join(parts) + ")", values


def _all_or_any(key: str, wanted: object, namespace: int, depth: int, column: str, of: Filtered) -> tuple[str, list[Any]]:
    if not isinstance(wanted, (list, tuple)) or not wanted:
        raise InvalidInput(f"{key} takes a non-empty list of conditions; {_EXAMPLE}")
    compiled = [_condition(one, namespace, depth + 1, column, of) for one in cast("Sequence[object]", wanted)]
    joined = (" AND " if key == "$and" else " OR ").join(sql for sql, _ in compiled)
    return f"({joined})", [value for _, some in compiled for value in some]


def _on_field(name: str, wanted: object, namespace: int, column: str, of: Filtered) -> tuple[str, list[Any]]:
    if not isinstance(wanted, Mapping):
        wanted = {"$eq": wanted}
    parts: list[str] = []
    values: list[Any] = []
    for operator, operand in cast("Mapping[object, object]", wanted).items():
        sql, some = _operation(operator, operand)
        compared = sql.replace("value", "f.value")
        inner = f"SELECT f.{of.ref} FROM {of.fields} AS f WHERE f.namespace = ? AND f.name = ? AND {compared}"
        parts.append(f"{column} {'NOT ' if operator in ('$ne', '$nin') else ''}IN ({inner})")
        values += [namespace, name, *some]
    if not parts:
        raise InvalidInput(f"where has no condition for {name!r}; {_EXAMPLE}")
    return "(" + " AND ".join(parts) + ")", values


def _operation(operator: object, operand: object) -> tuple[str, list[Any]]:
    if operator in ("$eq", "$ne"):
        return "value = ?", [FieldValue(encode_value(operand))]
    if operator in ("$in", "$nin"):
        if not isinstance(operand, (list, tuple)) or not operand:
            raise InvalidInput(f"{operator} takes a non-empty list")
        if len(cast("Sequence[object]", operand)) > _MAX_OPTIONS:
            raise InvalidInput(f"{operator} takes at most {_MAX_OPTIONS:,} values")
        options = [FieldValue(encode_value(one)) for one in cast("Sequence[object]", operand)]
        return f"value IN ({','.join('?' * len(options))})", options
    if operator in _COMPARE:
        if isinstance(operand, bool) or not isinstance(operand, (str, int, float)):
            raise InvalidInput(f"{operator} compares with a number or a string, not with {operand!r}")
        operand = encode_value(operand)
        kinds = "('text')" if isinstance(operand, str) else "('integer', 'real')"
        return f"value {_COMPARE[str(operator)]} ? AND typeof(value) IN {kinds}", [FieldValue(operand)]
    raise InvalidInput(f"where has the unknown operator {operator!r}; use $eq $ne $gt $gte $lt $lte $in $nin")
