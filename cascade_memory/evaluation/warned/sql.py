"""The agent for text to SQL that listens to warnings; each of its queries is a step."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cascade_memory import RecalledCase, Step, Trajectory
from cascade_memory.evaluation.reuse.sql_agent import SQLAgent
from cascade_memory.evaluation.stream import Attempt
from cascade_memory.evaluation.tasks.task import Item
from cascade_memory.evaluation.warned.listening import Act, Listener

TOOL = "sql"


class SQL:
    """Adapts a recalled query like ``SQLAgent`` at full strength, and listens to warnings; each query that it runs is a step.

    First it runs the recalled query with the values of its own question. If the database refuses this query, or a warning
    makes it leave the query out, it runs one with other tables and columns. The first query that runs is its answer. It
    leaves out queries that it was told to be mistakes. If no query is left that runs, it runs the query that it was told to
    have worked, adapted to its own question. If that fails too, it runs its last resort, if it has one.
    """

    def __init__(self, agent: SQLAgent, *, alone: Sequence[bool]) -> None:
        self._agent, self._alone = agent, alone

    def attempt(self, place: int, cases: Sequence[RecalledCase], listener: Listener) -> Attempt:
        """Attempt a question with the first of the cases."""
        item = self._agent.items[place]
        if self._alone[place]:
            versions = [item.solution]
        elif cases:
            versions = self._agent.versions(cases[0].query, query_in(cases[0]), item)[::-1]
        else:
            return Attempt(False, None, steps=0)
        steps = self._run(versions, item, listener)
        if not steps:
            return Attempt(False, None, steps=0)
        answer = str(steps[-1].arguments["query"])
        right = not steps[-1].failed and self._agent.is_right(answer, item)
        return Attempt(right, Trajectory(steps, answer=answer), steps=len(steps))

    def _run(self, versions: Sequence[str], item: Item, listener: Listener) -> list[Step]:
        steps: list[Step] = []
        worked: list[str] = []
        for sql in dict.fromkeys(versions):
            told = listener.before(act_of(sql, item, steps))
            if told is None:
                steps.append(self._step(sql, item))
                if not steps[-1].failed:
                    return steps
            elif told.instead:
                worked.append(self._agent.adapted(told.query, sql_in(told.instead), item))
        for sql in worked:
            if sql not in versions and listener.before(act_of(sql, item, steps)) is None:
                steps.append(self._step(sql, item))
                if not steps[-1].failed:
                    return steps
                break
        after_all = listener.last_resort()
        if after_all is not None and after_all.arguments is not None:
            steps.append(self._step(str(after_all.arguments["query"]), item))
        return steps

    def _step(self, sql: str, item: Item) -> Step:
        ran, observation = self._agent.answer(sql, item)
        return Step(tool=TOOL, arguments=_arguments(sql, item), observation=observation, failed=not ran)

    def close(self) -> None:
        """End the process that runs queries."""
        self._agent.close()


def act_of(sql: str, item: Item, done: Sequence[Step] = ()) -> Act:
    """Describe the call that runs a query on the database of a question.

    >>> act_of("SELECT 1", Item("", "", {"db_id": "pets"})).action
    'sql({"database": "pets", "query": "SELECT 1"})'
    """
    arguments = _arguments(sql, item)
    return Act(Step(tool=TOOL, arguments=arguments).action, TOOL, arguments, done)


def _arguments(sql: str, item: Item) -> dict[str, str]:
    return {"database": str(item.fields["db_id"]), "query": sql}


def sql_in(action: str) -> str:
    """Return the query in a call that is written as text; any other text is taken as the query itself.

    >>> sql_in('sql({"query": "SELECT 1"})'), sql_in("SELECT 2")
    ('SELECT 1', 'SELECT 2')
    """
    if action.startswith(f"{TOOL}(") and action.endswith(")"):
        try:
            return str(json.loads(action[len(TOOL) + 1 : -1])["query"])
        except (ValueError, KeyError, TypeError):
            return ""
    return action


def query_in(case: RecalledCase) -> str:
    """Return the SQL that a case holds: the answer of its trajectory, or its solution if that is a text."""
    return case.solution.answer if isinstance(case.solution, Trajectory) else str(case.solution)
