"""What a conversation was about, and what was done in it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage, convert_to_messages

from cascade_memory.domain.react_text import is_react, read_react
from cascade_memory.domain.trajectory import Solution, Step, Trajectory, capped
from cascade_memory.domain.validation import MAX_QUERY_CHARS, clean_text

OWN_TOOL = "recall_cases"  # the name of ``memory.tool()``
RECALLED = "cascade_recall"  # marks a tool message that shows recalled cases
MAX_ANSWER_CHARS = 200_000


def messages_in(value: object) -> list[BaseMessage]:
    """Return the messages of a state, a mapping or a list; none where there are none."""
    found = read(value, "messages") if not isinstance(value, (list, tuple)) else value
    if isinstance(found, BaseMessage):
        return [found]
    if not isinstance(found, (list, tuple)) or not found:
        return []
    items = cast("Sequence[Any]", found)
    if all(isinstance(one, BaseMessage) for one in items):
        return list(items)
    try:
        return convert_to_messages(cast("Sequence[AnyMessage]", items))
    except (ValueError, NotImplementedError, TypeError):
        return []  # a list of something else


def read(state: object, key: str) -> Any:
    """Return a field of a state, which may be a mapping, a dataclass or a pydantic model; None if there is none."""
    if isinstance(state, Mapping):
        return cast("Mapping[str, Any]", state).get(key)
    return getattr(state, key, None)


def text_of(message: BaseMessage) -> str:
    """Return the text of a message, whatever blocks it is made of, as the memory can store it."""
    return clean_text(str(message.text)).strip()


def task_in(messages: Sequence[BaseMessage]) -> tuple[str, str | None]:
    """Return what was asked last, and the id of that message; empty when nothing was."""
    for message in reversed(messages):
        if _asks(message) and (text := text_of(message)):
            return text[:MAX_QUERY_CHARS], message.id
    return "", None


def _asks(message: BaseMessage) -> bool:
    """Say whether a person speaks: ReAct agents that write text are told their observations in the same role."""
    return message.type == "human" and not text_of(message).startswith("Observation")


def since(messages: Sequence[BaseMessage], anchor: str | None) -> list[BaseMessage]:
    """Return the messages from the one with this id on; without it, from the last human one."""
    places = [i for i, message in enumerate(messages) if anchor is not None and message.id == anchor]
    if not places:
        places = [i for i, message in enumerate(messages) if _asks(message)]
    return list(messages[places[-1] :]) if places else list(messages)


def solution_in(messages: Sequence[BaseMessage], own: Collection[str] = ()) -> Solution | None:
    """Return what was done and answered: a trajectory if there were steps, else the answer; None if there was neither.

    Recalled cases are left out (they are no new experience): tool messages marked as such, and the calls named by ``own``.
    """
    said = [message for message in messages if isinstance(message, AIMessage)]
    if not any(message.tool_calls for message in said) and any(is_react(text_of(message)) for message in said):
        return _react(messages)
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    steps: list[Step] = []
    answer = ""
    for message in said:
        text = text_of(message)
        if message.tool_calls:
            steps += _calls(message, text, results, own)
            answer = ""
        elif text:
            if answer:
                steps.append(Step(thought=answer))
            answer = text
    return made(steps, answer)


def made(steps: Sequence[Step], answer: str) -> Solution | None:
    """Return steps and answer as a solution short enough to keep."""
    if steps:
        return capped(Trajectory(steps, answer=answer))
    return answer[:MAX_ANSWER_CHARS] or None


def _calls(message: AIMessage, text: str, results: Mapping[str, ToolMessage], own: Collection[str]) -> list[Step]:
    steps: list[Step] = []
    for call in message.tool_calls:
        result = results.get(call["id"] or "")
        if call["name"] == OWN_TOOL or call["id"] in own or (result is not None and shows_cases(result)):
            continue
        steps.append(
            tool_step(
                call["name"],
                call["args"],
                observation="" if result is None else text_of(result),
                thought=text,
                failed=result is not None and result.status == "error",
            )
        )
        text = ""  # the thought belongs to the first of parallel calls
    return steps


def shows_cases(message: ToolMessage) -> bool:
    """Say whether a tool message shows cases of the memory: they came out of it, and must not go in again."""
    if message.additional_kwargs.get(RECALLED):
        return True
    artifact = message.artifact
    documents = cast("Sequence[Any]", artifact) if isinstance(artifact, (list, tuple)) else []
    return any("cascade_episode_id" in (read(one, "metadata") or {}) for one in documents)


def tool_step(name: str, arguments: object, *, observation: str, thought: str, failed: bool) -> Step:
    """Return a tool call as a step, whatever its arguments are made of."""
    try:
        plain: object = json.loads(json.dumps(arguments, default=str, skipkeys=True), parse_constant=str)
    except ValueError:  # a circular structure
        plain = str(arguments)
    fields = cast("dict[str, Any]", plain) if isinstance(plain, dict) else {} if plain in (None, "") else {"input": plain}
    return Step(
        tool=clean_text(name) or "tool",
        arguments=cast("dict[str, Any]", json.loads(clean_text(json.dumps(fields, ensure_ascii=False)))),
        observation=clean_text(observation),
        thought=clean_text(thought),
        failed=failed,
    )


def _react(messages: Sequence[BaseMessage]) -> Solution | None:
    told = [message for message in messages if message.type != "system"]
    transcript = "\n".join(text_of(message) for message in (told[1:] if told and told[0].type == "human" else told))
    found = read_react(transcript)
    return None if found is None else capped(found)


def answer_in(output: object) -> str:
    """Return the final answer that a chain or graph gave, as text."""
    if isinstance(output, BaseMessage):
        return text_of(output)
    if isinstance(output, str):
        return clean_text(output).strip()
    if isinstance(output, Mapping):
        fields = cast("Mapping[str, Any]", output)
        for key in ("output", "answer", "result", "response", "text", "output_text", "generation"):
            if key in fields and (text := answer_in(fields[key])):
                return text
    if output is None:
        return ""
    return clean_text(json.dumps(output, default=str, ensure_ascii=False)).strip()
