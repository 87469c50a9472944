"""Questions, each about a table of its own, as LifelongAgentBench publishes them: what recurs is the form of the queries."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from cascade_memory.domain import connected
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.judging.answers import code_in
from cascade_memory.evaluation.judging.sql import QueryFailed, ReadOnlyQueries, Row, schema_of
from cascade_memory.evaluation.tasks.sql_task import SQLTask
from cascade_memory.evaluation.tasks.task import Item

_TYPES = re.compile(r"[A-Za-z][A-Za-z0-9_ ]{0,30}(\([0-9, ]{1,10}\))?")
_MOST_ROWS, _SHOWN_ROWS = 10_000, 2
_MOST_BYTES = 50_000_000  # of a result
_NOT_TASKS = (
    *(ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError),
    *(sqlite3.Error, QueryFailed),
)
_CHANGES = ("insert", "update", "delete", "replace")


class TablesTask(SQLTask):
    """Tasks that a query answers, or a statement that changes the table.

    An answer is right if it has the recorded rows, in any order, with numbers to two decimals; without recorded rows, those of
    the right query. A change is right if the table is afterwards as after the right statement. A model sees the schema and two
    rows of the table. SQLite plays MySQL here, and there are right queries that it cannot run or to which it gives other rows
    than the recorded ones; nobody solves these tasks.
    """

    def __init__(self, *, name: str, file: str) -> None:
        super().__init__(name=name, file=file)
        self._queries = ReadOnlyQueries(mysql=True, most_bytes=_MOST_BYTES)
        self._recorded: dict[str, Sequence[Row]] = {}

    def items(self, data: Path) -> list[Item]:
        """Read the tasks, and write each table into a database of its own."""
        path = data / self._file
        try:
            entries = cast("dict[str, dict[str, Any]]", json.loads(path.read_bytes()))
            return [self._item(number, entry) for number, entry in entries.items()]
        except OSError as error:
            raise InvalidInput(f"cannot read {path}: {error}") from error
        except _NOT_TASKS as error:
            raise InvalidInput(f"{path} holds something other than questions about tables: {error!r}"[:300]) from error

    def _item(self, number: str, entry: Mapping[str, Any]) -> Item:
        query, question, table = entry["answer_info"]["sql"], entry["instruction"], entry["table_info"]
        if not (isinstance(query, str) and isinstance(question, str)):
            raise TypeError("a question and its query are texts")
        name = f"table-{int(number)}"
        database = Path(self._folder.name) / f"{name}.sqlite"
        rows = _write(database, table)
        self._where[name] = database
        recorded = entry["answer_info"].get("direct")
        if recorded is not None:
            self._recorded[name] = [tuple(row) for row in recorded]
        fields = {
            "db_id": name,
            "question": question,
            "table": str(table["name"]),
            "columns": [str(column["name"]) for column in table["column_info_list"]],
            "kind": query.split(None, 1)[0].lower(),
        }
        shown = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows[:_SHOWN_ROWS])
        told = f"The schema of the database:\n{schema_of(database, self._queries)}\n\nIts first rows:\n{shown}"
        return Item(question, query, fields, f"{self.instruction}\n\n{told}")

    def reward(self, reply: str, item: Item) -> float:
        """Run the query or the statement of a reply, and compare its result with the right one."""
        return self.compare(code_in(reply, "sql"), item)

    def compare(self, sql: str, item: Item) -> float:
        """Return 1 if a query or a statement has the right result, otherwise 0."""
        try:
            if item.fields["kind"] in _CHANGES:
                return float(_comparable(self._changed(sql, item)) == _comparable(self._changed(str(item.label), item)))
            wanted = self._recorded.get(str(item.fields["db_id"]))
            if wanted is None:
                wanted = self._queries.run(self.database(item), _for_sqlite(str(item.label)))
            given = self._queries.run(self.database(item), _for_sqlite(sql), most_rows=len(wanted))
        except QueryFailed:
            return 0.0
        return float(_comparable(given) == _comparable(wanted))

    def rows(self, item: Item) -> Sequence[Row]:
        """Return the rows of a task's table."""
        return self._queries.run(self.database(item), f"SELECT * FROM {_quoted(str(item.fields['table']))}")

    def _changed(self, sql: str, item: Item) -> Sequence[Row]:
        return self._queries.after(self.database(item), _for_sqlite(sql), str(item.fields["table"]))


def _for_sqlite(sql: str) -> str:
    return sql.replace("\\'", "''")  # MySQL's way to write a quote


def _comparable(rows: Sequence[Row]) -> Counter[tuple[str, ...]]:
    """Count the rows, with their numbers to two decimals; a number that is recorded as text is a number."""
    return Counter(tuple(_comparable_value(value) for value in row) for row in rows)


def _comparable_value(value: Any) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return repr(value)
    return f"{round(number, 2) + 0.0:.2f}"


def _write(database: Path, table: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    """Write a table, and return its rows."""
    columns = cast("list[dict[str, str]]", table["column_info_list"])
    rows = cast("list[list[Any]]", table["row_list"])[:_MOST_ROWS]
    if not all(_TYPES.fullmatch(column["type"]) for column in columns):
        raise ValueError("a column has no type that SQLite knows")
    described = ", ".join(f"{_quoted(column['name'])} {column['type']}" for column in columns)
    with connected(database) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {_quoted(table['name'])}")
        connection.execute(f"CREATE TABLE {_quoted(table['name'])} ({described})")
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {_quoted(table['name'])} VALUES ({places})", rows)
        connection.commit()
    return rows


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
