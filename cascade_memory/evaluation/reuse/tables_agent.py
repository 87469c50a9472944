"""A solver for questions about tables, without a language model: it fills the form of a recalled query with new contents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from cascade_memory import RecalledCase
from cascade_memory.evaluation.reuse.tables_query import Asked, adapted
from cascade_memory.evaluation.reuse.tables_words import mentions
from cascade_memory.evaluation.solver import Attempt
from cascade_memory.evaluation.tasks.tables_task import TablesTask
from cascade_memory.evaluation.tasks.task import Item


class TablesAgent:
    """REUSE agent, no language model: it keeps the form of the best recalled query, and fills in the new question's contents.

    The form is which clauses there are, and how they nest. The contents are columns, values, comparisons, aggregates,
    directions and limits: each is taken from the place of the new question at which the old question mentions the old one.
    ``alone`` says which tasks it solves without a case. It learns about the right query only through the reward.
    """

    def __init__(self, task: TablesTask, items: Sequence[Item], *, alone: Sequence[bool]) -> None:
        self._task, self.items, self._alone = task, items, alone
        self._by_question = {item.query: item for item in items}
        self._asked = lru_cache(maxsize=None)(self._read)

    def attempt(self, place: int, cases: Sequence[RecalledCase]) -> Attempt:
        """Attempt a task with the first of the cases."""
        item = self.items[place]
        if self._alone[place]:
            return Attempt(True, item.solution)
        if not cases:
            return Attempt(False, None, steps=0)
        sql = self.adapted(cases[0].query, str(cases[0].solution), item)
        return Attempt(self._task.compare(sql, item) == 1.0, sql)

    def adapted(self, question: str, sql: str, item: Item) -> str:
        """Adapt the query of another question to the question of ``item``."""
        old = self._by_question.get(question)
        return sql if old is None else adapted(sql, self._asked(old.query), self._asked(item.query))

    def _read(self, question: str) -> Asked:
        item = self._by_question[question]
        table = str(item.fields["table"])
        quoted = '"' + table.replace('"', '""') + '"'
        columns: list[str] = item.fields["columns"]
        rows = self._task.rows(item, f"SELECT * FROM {quoted}")
        stored = {
            name: sorted({row[place] for row in rows if isinstance(row[place], str)}) for place, name in enumerate(columns)
        }
        return Asked(question, table, columns, mentions(question, columns, stored))
