"""Turns the steps that a client reports into a solution."""

from __future__ import annotations

from collections.abc import Sequence

from cascade_memory.domain.trajectory import Solution, Step
from cascade_memory.domain.transcript import MAX_FIELD_CHARS, as_solution, is_rendered, tool_step
from cascade_memory.domain.validation import clean_text
from cascade_memory.errors import InvalidInput
from cascade_memory.mcp_server.answers import DoneStep
from cascade_memory.redaction.marking import cut_short

MOST_STEPS = 200
_OWN = ("recall_cases", "check_action", "report_outcome", "add_case", "forget_cases", "memory_stats")


def solution_of(steps: Sequence[DoneStep], answer: str) -> Solution | None:
    """Make a solution of what a client says it did, without calls of this server's own tools, which are nothing new.

    >>> solution_of([], "42"), solution_of([DoneStep(tool="recall_cases")], "")
    ('42', None)
    >>> solution_of([DoneStep(tool="sql", observation="no such table", failed=True)], "").steps[0].failed
    True
    """
    if len(steps) > MOST_STEPS:
        raise InvalidInput(f"a report takes {MOST_STEPS} steps at most, not {len(steps)}: leave out those that do not matter")
    kept = [_step(one) for one in steps if one.tool not in _OWN and not is_rendered(one.observation)]
    return as_solution(kept, answer) if kept else answer or None


def _step(one: DoneStep) -> Step:
    if one.tool:
        return tool_step(one.tool, one.arguments, observation=one.observation, failed=one.failed)
    return Step(
        action=cut_short(clean_text(one.action), MAX_FIELD_CHARS),
        observation=cut_short(clean_text(one.observation), MAX_FIELD_CHARS),
        failed=one.failed,
    )
