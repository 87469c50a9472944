"""Questions, each about a table of its own, as LifelongAgentBench publishes them: what recurs is the form of the queries."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from cascade_memory.domain import connected
from cascade_memory.errors import InvalidInput
from cascade_memory.evaluation.judging.sql import QueryFailed, QueryTookTooLong, schema_of
from cascade_memory.evaluation.tasks.sql_task import SQLTask
from cascade_memory.evaluation.tasks.task import Item

_TYPES = re.compile(r"[A-Za-z][A-Za-z0-9_ ]{0,30}(\([0-9, ]{1,10}\))?")
_MOST_ROWS, _SHOWN_ROWS = 10_000, 2


class TablesTask(SQLTask):
    """Questions that a query answers. A question is left out if its query changes a table, or if SQLite cannot run it.

    A model sees the schema and two rows of the table.
    """

    def items(self, data: Path) -> list[Item]:
        """Read the questions, and write each table into a database of its own."""
        path = data / self._file
        try:
            entries = cast("dict[str, dict[str, Any]]", json.loads(path.read_bytes()))
            return [item for number, entry in entries.items() if (item := self._item(number, entry)) is not None]
        except OSError as error:
            raise InvalidInput(f"cannot read {path}: {error}") from error
        except (ValueError, LookupError, TypeError, AttributeError, sqlite3.Error, RecursionError) as error:
            raise InvalidInput(f"{path} holds something other than questions about tables: {error!r}"[:300]) from error

    def _item(self, number: str, entry: Mapping[str, Any]) -> Item | None:
        query, question, table = entry["answer_info"]["sql"], entry["instruction"], entry["table_info"]
        if not (isinstance(query, str) and isinstance(question, str)):
            raise TypeError("a question and its query are texts")
        query = query.replace("\\'", "''")  # MySQL's way to write a quote
        if not query.lstrip().lower().startswith(("select", "with")):
            return None
        name = f"table-{int(number)}"
        database = Path(self._folder.name) / f"{name}.sqlite"
        rows = _write(database, table)
        self._where[name] = database
        try:
            self._queries.run(database, query)
        except QueryTookTooLong as error:  # left out, it would make another stream of the same file
            raise InvalidInput(
                f"the right query of question {number}: {error}; try again when the machine is less busy"
            ) from error
        except QueryFailed:
            return None
        shown = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows[:_SHOWN_ROWS])
        told = f"The schema of the database:\n{schema_of(database, self._queries)}\n\nIts first rows:\n{shown}"
        return Item(question, query, {"db_id": name, "question": question}, f"{self.instruction}\n\n{told}")


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
