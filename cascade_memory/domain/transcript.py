"""Turns what an agent did into a solution that is short enough to store and does not quote the memory's own cases."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from cascade_memory.domain.plain_json import plain_json
from cascade_memory.domain.trajectory import Solution, Step, Trajectory, capped
from cascade_memory.domain.validation import clean_text
from cascade_memory.errors import InvalidInput
from cascade_memory.redaction.marking import cut_short

MAX_FIELD_CHARS = 8_000
MAX_ANSWER_CHARS = 100_000
_FENCE = re.compile(r"^--- memory-[0-9a-f]{10} ", re.MULTILINE)
_ANSWER_KEYS = ("output", "answer", "result", "response", "text", "output_text", "generation", "reply", "content")


def as_solution(steps: Sequence[Step], answer: str) -> Solution | None:
    """Make a solution from steps and an answer, shortened so that it can be stored.

    >>> as_solution([], "42"), as_solution([], "")
    ('42', None)
    """
    answer = "" if _FENCE.search(answer) else cut_short(answer, MAX_ANSWER_CHARS)
    if steps:
        return capped(Trajectory(steps, answer=answer))
    return answer or None


def tool_step(name: str, arguments: object, *, observation: str, thought: str = "", failed: bool = False) -> Step:
    """Make a step from a tool call, with arguments of any type.

    >>> tool_step("search", {"q": "Turing"}, observation="born in 1912").action
    'search({"q": "Turing"})'
    """
    name = clean_text(name) or "tool"
    given = clean_text(as_json(arguments))
    try:
        plain: Any = json.loads(given, parse_constant=str)
    except RecursionError:  # the writer goes a little deeper than the reader
        plain = f"({type(arguments).__name__})"
    fields = cast("dict[str, Any]", plain) if isinstance(plain, dict) else {} if plain in (None, "") else {"input": plain}
    short = len(given) <= MAX_FIELD_CHARS and _is_shallow(fields)
    return Step(
        tool=name,
        action="" if short else f"{name}({cut_short(given, MAX_FIELD_CHARS)})",
        arguments=fields if short else {},
        observation=cut_short(clean_text(observation), MAX_FIELD_CHARS),
        thought=cut_short(clean_text(thought), MAX_FIELD_CHARS),
        failed=failed,
    )


def _is_shallow(fields: Mapping[str, Any]) -> bool:
    """Say whether a step can store these arguments; arguments that it cannot store become part of its text only."""
    try:
        plain_json(fields, "arguments")
    except InvalidInput:
        return False
    return True


def is_rendered(text: str) -> bool:
    r"""Say whether a text that a tool returned is, or quotes, cases that this memory rendered.

    >>> is_rendered("Task: heat the cup\nSolution:\nmicrowave it"), is_rendered("The solution: microwave it")
    (True, False)
    """
    if _FENCE.search(text):
        return True
    start = 0 if text.startswith("Task: ") else text.find("\nTask: ")
    return start >= 0 and any(text.find(kind, start) >= 0 for kind in ("\nSolution:\n", "\nSteps that solved it:\n"))


def answer_among(fields: Mapping[str, Any]) -> list[Any]:
    """Find the values in a result whose keys usually hold the answer, the most likely first."""
    return [fields[key] for key in _ANSWER_KEYS if key in fields]


def as_json(value: object) -> str:
    """Convert any value to JSON; values of unknown types become text."""
    dump = getattr(value, "model_dump_json", None)  # a pydantic model has this method
    try:
        return str(dump()) if callable(dump) else json.dumps(value, default=str, skipkeys=True, ensure_ascii=False)
    except Exception:  # noqa: BLE001 - circular, too deep, or objects that cannot even be printed
        return json.dumps(f"({type(value).__name__})")
