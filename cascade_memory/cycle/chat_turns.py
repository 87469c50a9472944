"""Step 3, reuse, as a conversation: each case is an earlier turn of the chat, the task as the user's and then the answer."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Literal, TypeAlias

from cascade_memory.cycle.reuse import MAX_CASE_CHARS, MAX_TOTAL_CHARS, is_failure, render
from cascade_memory.domain.quoting import quoted
from cascade_memory.domain.recall import RecalledCase
from cascade_memory.domain.trajectory import Trajectory
from cascade_memory.domain.trust import LEVELS
from cascade_memory.errors import InvalidInput
from cascade_memory.visible import fitting, legible

Turn: TypeAlias = "dict[str, Any]"
Show: TypeAlias = Literal["text", "turns"]  # how cases reach a model: between fences before the task, or as earlier turns

# A turn looks as if it had happened, so it says more than a text between fences: that takes a source that judges or knows.
_TRUSTED = LEVELS["judge"]
_NOTED = "I keep these cases in mind."
_NO_ANSWER = "Done."


def check_show(show: object) -> None:
    """Refuse what is no way to show cases."""
    if show not in ("text", "turns"):
        raise InvalidInput(f'show must be "text" or "turns", not {quoted(show)}')


def is_only_text(case: RecalledCase) -> bool:
    """Say whether a case is shown between fences whatever was asked for: it failed, or its source is not trusted so far."""
    return is_failure(case) or case.trust < _TRUSTED


def turns(cases: Sequence[RecalledCase], tools: Collection[str] = ()) -> list[Turn]:
    """Write the cases as earlier turns of a chat, in the form of OpenAI's API, the most promising last.

    Steps that called one of ``tools`` become calls with their results, if all steps of the case did; other steps become text.
    Cases that failed, and those whose source is not trusted so far, come first, as text between fences. A case that no longer
    fits is left out.
    """
    fenced = [case for case in cases if is_only_text(case)]
    found: list[list[Turn]] = []
    used = 0
    for number, case in enumerate(one for one in cases if one not in fenced):
        turn = _turn(case, f"case_{number + 1}", tools)
        size = sum(len(json.dumps(one, ensure_ascii=False)) for one in turn)
        if found and used + size > MAX_TOTAL_CHARS:
            break
        used += size
        found.insert(0, turn)
    text = render(fenced, max_total_chars=max(MAX_CASE_CHARS, MAX_TOTAL_CHARS - used))
    first = [{"role": "user", "content": text}, {"role": "assistant", "content": _NOTED}] if text else []
    return [*first, *(one for turn in found for one in turn)]


def _turn(case: RecalledCase, name: str, tools: Collection[str]) -> list[Turn]:
    query = fitting(case.query, MAX_CASE_CHARS // 2)
    asked: Turn = {"role": "user", "content": query}
    left = max(MAX_CASE_CHARS - len(query), MAX_CASE_CHARS // 4)
    if isinstance(case.solution, str):
        return [asked, {"role": "assistant", "content": fitting(case.solution, left)}]
    calls = _calls(case.solution, name, left) if all(step.tool in tools for step in case.solution.steps) else []
    return [asked, *(calls or [{"role": "assistant", "content": fitting(case.solution.as_text(), left)}])]


def _calls(solution: Trajectory, name: str, limit: int) -> list[Turn]:
    """Write a trajectory of tool calls: each call with its result, and the answer at the end; nothing if it is too long."""
    each = limit // (2 * len(solution.steps) + 1)
    written: list[Turn] = []
    for number, step in enumerate(solution.steps, start=1):
        arguments = legible(json.dumps(dict(step.arguments), ensure_ascii=False, sort_keys=True))
        if len(arguments) > each:  # half of them would be no JSON
            return []
        call = {"id": f"{name}_{number}", "type": "function", "function": {"name": step.tool, "arguments": arguments}}
        thought = fitting(step.thought, each) if step.thought else ""
        written.append({"role": "assistant", "content": thought, "tool_calls": [call]})
        written.append({"role": "tool", "tool_call_id": call["id"], "content": fitting(step.observation, each) or "(nothing)"})
    return [*written, {"role": "assistant", "content": fitting(solution.answer, each) if solution.answer else _NO_ANSWER}]
