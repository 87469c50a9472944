"""The text that is embedded to find a case: its task, alone or with the tool calls that solved it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from cascade_memory.domain.trajectory import Solution, Trajectory
from cascade_memory.domain.validation import MAX_QUERY_CHARS
from cascade_memory.visible import shortened

CaseText: TypeAlias = "Callable[[str, Solution], str]"
_MAX_CHARS = 2_000  # limit for the tool calls: embedding models ignore what comes after that


def task_alone(query: str, solution: Solution) -> str:  # noqa: ARG001 - the signature of a CaseText
    """Return the task alone: the default."""
    return query


def with_tool_calls(query: str, solution: Solution) -> str:
    r"""Return the task and a line with the tool calls that solved it, as the paper does for deep search.

    >>> from cascade_memory import CascadeMemory, Retention, Step
    >>> memory = CascadeMemory(embedder="hashing", retention=Retention(case_text=with_tool_calls))
    >>> recall = memory.recall("Where was the director of Jaws born?")
    >>> steps = [Step(tool="search", arguments={"query": "Jaws"}), Step(tool="search", arguments={"query": "Spielberg"})]
    >>> case = memory.cases.get(memory.reward(recall.episode_id, 1.0, solution=steps))
    >>> print(case.query)
    Where was the director of Jaws born?
    Tool calls: search({"query": "Jaws"}); search({"query": "Spielberg"})
    """
    calls = [step.action for step in solution.steps if step.tool] if isinstance(solution, Trajectory) else []
    return f"{query}\nTool calls: {shortened('; '.join(calls), _MAX_CHARS)}"[:MAX_QUERY_CHARS] if calls else query
