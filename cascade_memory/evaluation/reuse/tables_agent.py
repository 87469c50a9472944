"""A solver for questions about tables, without a language model: it fills the form of a recalled query with new contents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from cascade_memory.evaluation.reuse.sql_agent import QueryAgent
from cascade_memory.evaluation.reuse.tables_query import Asked, adapted
from cascade_memory.evaluation.reuse.tables_words import mentions
from cascade_memory.evaluation.tasks.tables_task import TablesTask
from cascade_memory.evaluation.tasks.task import Item


class TablesAgent(QueryAgent):
    """REUSE agent, no language model: it keeps the form of the best recalled query, and fills in the new question's contents.

    The form is which clauses there are, and how they nest. The contents are columns, values, comparisons, aggregates,
    directions and limits: each is taken from the place of the new question at which the old question mentions the old one.
    ``alone`` says which tasks it solves without a case. It learns about the right query only through the reward.
    """

    def __init__(self, task: TablesTask, items: Sequence[Item], *, alone: Sequence[bool]) -> None:
        super().__init__(items, alone)
        self._task = task
        self._by_question = {item.query: item for item in items}
        self._asked = lru_cache(maxsize=None)(self._read)

    def adapted(self, query: str, sql: str, item: Item) -> str:
        """Adapt the query of another question to the question of ``item``."""
        old = self._by_question.get(query)
        return sql if old is None else adapted(sql, self._asked(old.query), self._asked(item.query))

    def is_right(self, sql: str, item: Item) -> bool:
        """Say whether a query or a statement has the right result."""
        return self._task.compare(sql, item) == 1.0

    def _read(self, question: str) -> Asked:
        item = self._by_question[question]
        columns: list[str] = item.fields["columns"]
        rows = self._task.rows(item)
        stored = {
            name: sorted({row[place] for row in rows if isinstance(row[place], str)}) for place, name in enumerate(columns)
        }
        return Asked(question, str(item.fields["table"]), columns, mentions(question, columns, stored))
