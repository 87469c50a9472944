"""A solver for text to SQL without a language model: it solves a declared share alone, the rest by adapting a query."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from cascade_memory import RecalledCase
from cascade_memory.evaluation.judging.sql import QueryFailed, ReadOnlyQueries
from cascade_memory.evaluation.reuse.sql_queries import Asked, Schema, Token, read_schema, read_sql, renamed, revalued
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.evaluation.tasks.sql_task import SQLTask
from cascade_memory.evaluation.tasks.task import Item

Strength = Literal["full", "map"]
_QUERY = re.compile(r"Database (\w+): (.*)", re.DOTALL)
_MOST_VALUES = 2000  # values of a column that are searched for in a question


def query_of(item: Item) -> str:
    """Build the query for the memory: the name of the database and the question.

    >>> query_of(Item("", "SELECT 1", {"db_id": "pets", "question": "How many pets are there?"}))
    'Database pets: How many pets are there?'
    """
    return f"Database {item.fields['db_id']}: {item.fields['question']}"


class QueryAgent(ABC):
    """Solves some questions alone, as an LLM answers some without memory; for the others it adapts the first case's query."""

    def __init__(self, items: Sequence[Item], alone: Sequence[bool]) -> None:
        self.items, self._alone = items, alone

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a question with the first of the cases."""
        item = self.items[place]
        if self._alone[place]:
            return Attempt(True, item.solution)
        if not cases:
            return Attempt(False, None, steps=0)
        sql = self.adapted(cases[0].query, str(cases[0].solution), item)
        return Attempt(self.is_right(sql, item), sql)

    @abstractmethod
    def adapted(self, query: str, sql: str, item: Item) -> str:
        """Adapt a query that answers another question to the question of ``item``."""

    @abstractmethod
    def is_right(self, sql: str, item: Item) -> bool:
        """Say whether a query answers a question."""


class SQLAgent(QueryAgent):
    """REUSE agent, no language model: it adapts the best recalled query to the names and values in the new question.

    ``alone`` says which questions it answers without a case, as an LLM answers some without memory. The strength "full" also
    replaces tables and columns, and keeps the old ones if the database refuses the new query; "map" replaces only values. The
    agent learns about the right query only through the reward.
    """

    def __init__(self, task: SQLTask, items: Sequence[Item], *, alone: Sequence[bool], strength: Strength) -> None:
        super().__init__(items, alone)
        self._task, self._strength = task, strength
        self._queries = ReadOnlyQueries()
        self._databases = {str(item.fields["db_id"]): task.database(item) for item in items}
        self._schema = lru_cache(maxsize=None)(self._read_schema)
        self._values = lru_cache(maxsize=10_000)(self._read_values)

    def adapted(self, query: str, sql: str, item: Item) -> str:
        """Adapt a query that answers another question to the question of ``item``."""
        *bolder, last = self.versions(query, sql, item)
        return next((one for one in bolder if self.answer(one, item)[0]), last)

    def versions(self, query: str, sql: str, item: Item) -> list[str]:
        """Adapt a query in each way that the agent knows, the boldest first.

        The boldest way also replaces tables and columns; the last one replaces only values.
        """
        found = _QUERY.fullmatch(query)
        if found is None or found[1] not in self._databases:
            return [sql]
        name = str(item.fields["db_id"])
        old = Asked(found[2], self._schema(found[1]))
        new = Asked(str(item.fields["question"]), self._schema(name))
        tokens = read_sql(sql, old.schema)
        other = renamed(tokens, old, new) if self._strength == "full" else None
        bolder = [] if other is None else [self._written(other, old, new, name)]
        return [*bolder, self._written(tokens, old, new, name)]

    def _written(self, tokens: Sequence[Token], old: Asked, new: Asked, name: str) -> str:
        values = revalued(tokens, old.question, new.question, lambda table, column: self._values(name, table, column))
        return " ".join(token.text for token in values)

    def answer(self, sql: str, item: Item) -> tuple[bool, str]:
        """Run a query on the database of a question; return whether it ran, and its first rows or the error."""
        try:
            rows = self._queries.run(self._databases[str(item.fields["db_id"])], sql, most_rows=1)
        except QueryFailed as error:
            return False, str(error)
        return True, str(rows)

    def is_right(self, sql: str, item: Item) -> bool:
        """Say whether a query answers a question."""
        return self._task.reward(sql, item) == 1.0

    def _read_schema(self, name: str) -> Schema:
        return read_schema(self._databases[name])

    def _read_values(self, name: str, table: str, column: str) -> tuple[str, ...]:
        """Return the texts in a column; none if there is no such column."""
        if column not in self._schema(name).tables.get(table, {}):
            return ()
        sql = f"SELECT DISTINCT `{column}` FROM `{table}` LIMIT {_MOST_VALUES}"
        try:
            rows = self._queries.run(self._databases[name], sql)
        except QueryFailed:
            return ()
        return tuple(str(row[0]) for row in rows if row[0] not in (None, ""))

    def close(self) -> None:
        """End the process that runs queries."""
        self._queries.close()
