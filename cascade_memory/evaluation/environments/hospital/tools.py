"""The tools of the EHR agent, with the names that EHRAgent gave them. They run outside the script's process.

One of them computes arithmetic without names: numbers, signs and operators.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from cascade_memory.evaluation.environments.hospital.selection import (
    Condition,
    Selection,
    literal,
    quoted,
    read_conditions,
)
from cascade_memory.evaluation.environments.hospital.vocabulary import NOW, TABLES
from cascade_memory.evaluation.environments.sandbox.child import COLUMN
from cascade_memory.evaluation.environments.sandbox.expressions import BINARY, UNARY
from cascade_memory.evaluation.environments.sandbox.sandbox import TableHandle, ToolFailed
from cascade_memory.evaluation.environments.sandbox.statements import Refused, read_script
from cascade_memory.evaluation.judging.sql import QueryFailed, ReadOnlyQueries, Row

_LARGEST = 10**300
_MOST_ROWS, _MOST_VALUES, _MOST_TABLES, _MOST_CONDITIONS, _MOST_CHARACTERS = 1_000, 20_000, 60, 20, 100_000
_MOST_COMPARED = 100  # characters of a value that are compared with those of others
_QUOTED_OR_NOW = re.compile(r"""'[^']*'|"[^"]*"|\bcurrent_time\b""", re.IGNORECASE)


def calculated(formula: str) -> float:
    """Compute a formula of numbers and operators; raise ``ValueError`` if that is not possible.

    >>> calculated("(12 + 3) / 2")
    7.5
    """
    try:
        body = read_script(formula.strip()).body
        if len(body) != 1 or not isinstance(body[0], ast.Expr):
            raise ValueError("one formula is needed")
        value = _value(body[0].value)
    except (SyntaxError, Refused, ArithmeticError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if type(value) not in (int, float) or not abs(value) <= _LARGEST:  # nan is not below anything
        raise ValueError("the result is no real number, or it is too large")
    return value


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.BinOp):
        return BINARY[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp):
        return UNARY[type(node.op)](_value(node.operand))
    raise ValueError("a formula may have only numbers and operators")


class Database:
    """A file of records, read through a process that runs queries read-only and within limits."""

    def __init__(self, path: Path, queries: ReadOnlyQueries) -> None:
        self._path, self._queries = path, queries
        self.columns = cache(self._columns)
        self.is_number = cache(self._is_number)
        self.count = lru_cache(maxsize=1_000)(self._count)  # of rows; they never change

    def rows(self, sql: str, most: int = _MOST_VALUES) -> list[Row]:
        """Run a query and return its rows; raise ``ToolFailed`` if there are more than ``most``."""
        try:
            rows = self._queries.run(self._path, sql, most_rows=most)
        except QueryFailed as failed:
            raise ToolFailed(str(failed)) from None
        if len(rows) > most:
            raise ToolFailed(f"there are more than {most:,} rows: choose fewer of them")
        return [tuple(one.hex() if isinstance(one, bytes) else one for one in row) for row in rows]

    def _count(self, sql: str) -> int:
        return self.rows(f"SELECT count(*) FROM ({sql})")[0][0]

    def _columns(self, table: str) -> tuple[str, ...]:
        return tuple(name for name in TABLES[table] if self._has(table, name))

    def _has(self, table: str, column: str) -> bool:
        try:
            self.rows(f'SELECT one."{column}" FROM "{table}" AS one LIMIT 0')
        except ToolFailed:
            return False
        return True

    def _is_number(self, table: str, column: str) -> bool:
        rows = self.rows(f'SELECT typeof("{column}") FROM "{table}" WHERE "{column}" IS NOT NULL LIMIT 1')
        return bool(rows) and rows[0][0] in ("integer", "real")


class Tools:
    """The tools for one script; the tables that it loads live as long as this object."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tables: list[Selection] = []

    def by_name(self) -> Mapping[str, Callable[..., Any]]:
        """Return the tools with their names in a script."""
        return {
            "LoadDB": self.load,
            "FilterDB": self.filter,
            "GetValue": self.value,
            "SQLInterpreter": self.sql,
            "Calendar": self.calendar,
            "Calculate": self.calculate,
            COLUMN: self.column,
        }

    def load(self, name: object) -> TableHandle:
        """Return a handle of the table with this name."""
        table = _text(name, "LoadDB needs the name of a table").strip().lower()
        if table not in TABLES:
            raise ToolFailed(f"there is no table {table!r}; there are {', '.join(TABLES)}")
        columns = self._database.columns(table)
        if not columns:
            raise ToolFailed(f"this database has no table {table!r}")
        return self._kept(Selection(table, columns, f'SELECT * FROM "{table}"'))

    def filter(self, table: object, conditions: object) -> TableHandle:
        """Return a handle of those rows of a table that meet the conditions; see ``selection.read_conditions``."""
        given = selection = self._selection(table, "FilterDB")
        joined = "||".join(conditions) if isinstance(conditions, list) else conditions
        text = _text(joined, "FilterDB needs its conditions as one text")
        if text.count("||") >= _MOST_CONDITIONS or len(selection.sql) + len(text) > _MOST_CHARACTERS:
            raise ToolFailed(f"FilterDB: there are too many conditions; at most {_MOST_CONDITIONS} are allowed")
        try:
            for one in read_conditions(text):
                selection = selection.where(self._condition(one, selection))
                if one.relation == "=" and not self._database.count(selection.sql):
                    self._check_value(one, given)
        except (LookupError, ValueError) as error:
            raise ToolFailed(f"FilterDB: {error.args[0]}") from None
        return self._kept(selection)

    def _condition(self, one: Condition, selection: Selection) -> str:
        column = selection.column(one.column)
        if one.relation in ("max", "min"):
            return f'"{column}" = (SELECT {one.relation}("{column}") FROM ({selection.sql}))'
        number = self._database.is_number(selection.table, column)
        values = ", ".join(literal(value, number=number) for value in one.values)
        return f'"{column}" IN ({values})' if one.relation == "in" else f'"{column}" {one.relation} {values}'

    def _check_value(self, one: Condition, given: Selection) -> None:
        """Raise an error that names the nearest values, if the value of a condition does not occur in the table ``given``."""
        column = given.column(one.column)
        rows = self._database.rows(f'SELECT DISTINCT "{column}" FROM ({given.sql}) LIMIT 2000')
        texts = [str(row[0])[:_MOST_COMPARED] for row in rows]
        if one.values[0] not in texts:
            near = difflib.get_close_matches(one.values[0][:_MOST_COMPARED], texts, n=5, cutoff=0.0)
            raise ValueError(f"{column} has no value {one.values[0]!r}; the nearest values are {', '.join(near)}")

    def value(self, table: object, argument: object) -> Any:
        """Return the values of a column as text or, if ``argument`` also names an operation, what it computes from them."""
        selection = self._selection(table, "GetValue")
        name, _, operation = _text(argument, "GetValue needs the name of a column").partition(",")
        values = self._values(selection, name, "GetValue")
        if operation.strip():
            return _computed(operation.strip().lower(), values)
        return ", ".join(dict.fromkeys(map(str, values)))

    def column(self, table: object, name: object) -> list[Any]:
        """Return the values of a column as a list."""
        return self._values(self._selection(table, "table"), _text(name, "a column needs a name"), "table")

    def _values(self, selection: Selection, name: str, tool: str) -> list[Any]:
        try:
            column = selection.column(name)
        except LookupError as error:
            raise ToolFailed(f"{tool}: {error.args[0]}") from None
        return [row[0] for row in self._database.rows(f'SELECT "{column}" FROM ({selection.sql})')]

    def sql(self, query: object) -> list[Row]:
        """Run a query and return its rows. ``current_time`` in the query stands for the present time in the records."""
        text = _text(query, "SQLInterpreter needs a query as text")
        written = _QUOTED_OR_NOW.sub(lambda found: found[0] if found[0][0] in "'\"" else quoted(NOW), text)
        try:
            return self._database.rows(written, _MOST_ROWS)
        except ToolFailed as failed:
            raise ToolFailed(f"SQLInterpreter: {failed}") from None

    def calendar(self, duration: object) -> str:
        """Return the present time in the records, moved by a duration such as "-1 year"."""
        text = _text(duration, "Calendar needs a duration as text")
        try:
            found = self._database.rows(f"SELECT datetime({quoted(NOW)}, {quoted(text)})")[0][0]
        except ValueError:
            found = None
        if found is None:
            raise ToolFailed(f"Calendar cannot read the duration {text!r}: write, for example, '-1 year', or '0 year' for now")
        return found

    def calculate(self, formula: object) -> float:
        """Compute the value of an arithmetic formula."""
        try:
            return calculated(_text(formula, "Calculate needs a formula as text"))
        except ValueError as error:
            raise ToolFailed(f"Calculate: {error}") from None

    def _selection(self, table: object, tool: str) -> Selection:
        if not isinstance(table, TableHandle) or not 0 <= table.number < len(self._tables):
            raise ToolFailed(f"{tool} needs a table from LoadDB or FilterDB first")
        return self._tables[table.number]

    def _kept(self, selection: Selection) -> TableHandle:
        if len(self._tables) >= _MOST_TABLES:
            raise ToolFailed(f"the code made more than {_MOST_TABLES} tables")
        self._tables.append(selection)
        return TableHandle(len(self._tables) - 1, selection.columns, self._database.count(selection.sql))


def _computed(operation: str, values: list[Any]) -> Any:
    known = [one for one in values if one is not None]
    if operation == "list":
        return [str(one) for one in values]
    if operation not in ("mean", "max", "min", "sum"):
        raise ToolFailed(f"GetValue has no operation {operation!r}; it has mean, max, min, sum and list")
    try:
        numbers = [float(one) for one in known]
    except ValueError:
        if operation in ("mean", "sum"):
            raise ToolFailed(f"GetValue: the {operation} needs numbers") from None
        return (max if operation == "max" else min)([str(one) for one in known])
    if not numbers:
        raise ToolFailed(f"GetValue: there are no values for {operation}")
    return {"mean": sum(numbers) / len(numbers), "sum": sum(numbers), "max": max(numbers), "min": min(numbers)}[operation]


def _text(value: object, otherwise: str) -> str:
    if not isinstance(value, str):
        raise ToolFailed(f"{otherwise}, not a value of type {type(value).__name__.removesuffix('Handle')}")
    try:
        value.encode()
    except UnicodeEncodeError:  # what SQLite says of it differs from Python to Python
        raise ToolFailed(f"{otherwise}, without halves of characters (surrogates are not allowed)") from None
    return value
