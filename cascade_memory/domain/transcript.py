"""Turns what an agent did into a solution that is short enough to store and does not quote the memory's own cases.

An agent may have written its steps as text, in the form of ReAct.
"""

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

_LABEL = re.compile(r"^[ \t]*(Thought|Action Input|Action|Observation|Final Answer)[ \t]*\d*[ \t]*:[ \t]*", re.MULTILINE)
MAX_FIELD_CHARS = 8_000
MAX_ANSWER_CHARS = 100_000
_FENCE = re.compile(r"^--- memory-[0-9a-f]{10} ", re.MULTILINE)
_ANSWER_KEYS = ("output", "answer", "result", "response", "text", "output_text", "generation", "reply", "content")


def is_react(text: str) -> bool:
    r"""Say whether a text contains actions in the ReAct format.

    >>> is_react("Thought: look first\nAction: look"), is_react("It is 42.")
    (True, False)
    """
    labels = [label for label, _ in _parts(text)]
    return "Action" in labels and ("Action Input" in labels or "Thought" in labels)


def read_react(text: str) -> Trajectory | None:
    r"""Parse a transcript into its steps; None if it has no steps.

    >>> text = "Thought: I need the key.\nAction: search\nAction Input: key\nObservation: on the shelf\nFinal Answer: shelf"
    >>> walk = read_react(text)
    >>> walk.steps[0].thought, walk.steps[0].action, walk.steps[0].observation, walk.answer
    ('I need the key.', 'search: key', 'on the shelf', 'shelf')
    """
    steps: list[dict[str, str]] = []
    thought = answer = ""
    for label, content in _parts(text):
        if label == "Thought":
            thought = content
        elif label == "Action":
            steps.append({"thought": thought, "action": content})
            thought = ""
        elif label == "Action Input" and steps and content:
            steps[-1]["action"] = f"{steps[-1]['action']}: {content}"
        elif label == "Observation" and steps:
            steps[-1]["observation"] = content
        elif label == "Final Answer":
            answer = content
    kept = [
        Step(action=step["action"], thought=step["thought"], observation=step.get("observation", ""))
        for step in steps
        if step["action"] or step["thought"]
    ]
    return Trajectory(kept, answer=answer) if kept else None


def thought_of(text: str) -> str:
    r"""Extract the thought that a model wrote before its action.

    >>> thought_of("Thought: I need the key.\nAction: search")
    'I need the key.'
    """
    parts = _parts(text)
    if not parts:
        return text.strip()
    return next((content for label, content in parts if label == "Thought"), "")


def _parts(text: str) -> list[tuple[str, str]]:
    found = list(_LABEL.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    pairs = zip(found, ends, strict=False)  # if no label was found, ``ends`` has one entry too many
    return [(match.group(1), text[match.end() : end].strip()) for match, end in pairs]


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
