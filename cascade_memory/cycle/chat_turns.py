"""Step 3, reuse, as a conversation: each case becomes earlier turns of the chat, the user's task and then the answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from typing import Any, Literal, TypeAlias

from cascade_memory.cycle.reuse import MAX_CASE_CHARS, MAX_TOTAL_CHARS, is_failure, render
from cascade_memory.domain.display import quoted
from cascade_memory.domain.recall import Recall, RecalledCase
from cascade_memory.domain.trajectory import Trajectory
from cascade_memory.domain.trust import LEVELS
from cascade_memory.errors import InvalidInput
from cascade_memory.visible import fitting, legible_within

Turn: TypeAlias = "dict[str, Any]"
Show: TypeAlias = Literal["text", "turns"]  # how cases reach a model: between fences before the task, or as earlier turns

# A turn looks as if it had happened, so a model may take it for more than a text between fences: that takes a source that
# judges or knows.
_TRUSTED = LEVELS["judge"]
_NOTED = "I keep these cases in mind."
_NO_ANSWER = "Done."
NOTHING = "(nothing)"  # some providers refuse a message without words


def check_show(show: object) -> None:
    """Raise ``InvalidInput`` if ``show`` names no way to show cases; None leaves the choice to ``way_to_show``."""
    if show not in ("text", "turns", None):
        raise InvalidInput(f'show must be "text" or "turns", not {quoted(show)}')


def is_only_text(case: RecalledCase) -> bool:
    """Say whether a case is always shown as text between fences: a failed attempt, or a case of a source with little trust."""
    return is_failure(case) or case.trust < _TRUSTED


def way_to_show(recall: Recall, show: Show | None = None) -> Show:
    """Return how cases are shown: as ``show`` says, or by default as turns if several may be turns, and as text otherwise.

    With one case the two are worth the same, and a text before the task leaves a provider's prompt cache valid. With four
    cases a small model solved more with turns: docs/decisions/49. Who has written a template wants it to be used.
    """
    if show is not None:
        return show
    several = sum(not is_only_text(case) for case in recall.cases) > 1
    return "turns" if several and recall.template is render else "text"


def turns(cases: Sequence[RecalledCase], tools: Collection[str] = (), recall: str = "") -> list[Turn]:
    """Write the cases as earlier turns of a chat, in the form of OpenAI's API, the most promising last.

    Steps that called one of ``tools`` become calls with their results, if all steps of the case did; other steps become text.
    Cases that failed, and those whose source is not trusted enough, come first, as text between fences. If a case does not fit
    into ``MAX_TOTAL_CHARS`` characters any more, it is left out, with all less promising ones. ``recall`` is the id of the
    recall: the ids of the calls are made from it, so that two recalls in one conversation share none.
    """
    if isinstance(tools, str):
        raise InvalidInput(f"tools are the names of several tools: [{quoted(tools)}], not {quoted(tools)}")
    fenced = [case for case in cases if is_only_text(case)]
    found: list[list[Turn]] = []
    used = 0
    for case in (one for one in cases if not is_only_text(one)):
        turn = _turn(case, f"{recall}\n{case.id}", tools)
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
    calls: list[Turn] = []
    if all(step.tool in tools for step in case.solution.steps):
        shares = (left, left // (2 * len(case.solution.steps) + 1))  # all of it, or else as much of every text
        calls = next(filter(None, (_calls(case.solution, name, left, share) for share in shares)), [])
    return [asked, *(calls or [{"role": "assistant", "content": fitting(case.solution.as_text(), left)}])]


def _calls(solution: Trajectory, name: str, limit: int, each: int) -> list[Turn]:
    """Write a trajectory as tool calls with their results, and its answer at the end.

    Return an empty list if that is too long for ``limit`` characters. Each text is cut to ``each`` characters. Only arguments
    are not cut, since a part of them would be no valid JSON.
    """
    written: list[Turn] = []
    for number, step in enumerate(solution.steps, start=1):
        arguments = json.dumps(legible_within(step.arguments), ensure_ascii=False, sort_keys=True)
        # Mistral wants nine letters or digits, and Anthropic no id twice in a conversation.
        name_of_call = hashlib.blake2b(f"{name}\n{number}".encode(errors="replace"), digest_size=5).hexdigest()[:9]
        call = {"id": name_of_call, "type": "function", "function": {"name": step.tool, "arguments": arguments}}
        thought = "" if step.thought.isspace() else fitting(step.thought, each)
        written.append({"role": "assistant", "content": thought, "tool_calls": [call]})
        written.append({"role": "tool", "tool_call_id": name_of_call, "content": said(step.observation, each)})
    written.append({"role": "assistant", "content": said(solution.answer or "", each, _NO_ANSWER)})
    texts = sum(
        len(one["content"]) + sum(len(call["function"]["arguments"]) for call in one.get("tool_calls", ())) for one in written
    )
    whole = sum(len(json.dumps(one, ensure_ascii=False)) for one in written)  # with names and ids, which a model reads as well
    return written if texts <= limit and whole <= 2 * limit else []


def said(text: str, limit: int, otherwise: str = NOTHING) -> str:
    r"""Return a text for a turn of the chat: cut to the limit, or ``otherwise`` if it is blank.

    >>> said(" \n", 10), said("it is hot", 10)
    ('(nothing)', 'it is hot')
    """
    return fitting(text, limit) if text.strip() else otherwise
