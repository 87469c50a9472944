"""Reads from a conversation which task was asked and how it was solved.

An agent's messages are recorded outside its history, because the history may be summarised before the episode ends.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage, convert_to_messages

from cascade_memory.conversation import turns
from cascade_memory.domain.recall import TOOL_NAME
from cascade_memory.domain.trajectory import Solution, Step, Trajectory
from cascade_memory.domain.transcript import (
    MAX_FIELD_CHARS,
    answer_among,
    as_json,
    as_solution,
    is_react,
    is_rendered,
    read_react,
    tool_step,
)
from cascade_memory.domain.validation import MAX_QUERY_CHARS, clean_text
from cascade_memory.redaction.marking import cut_short

_MAX_EPISODES = 1024
_MAX_MESSAGES = 2_000
RECALLED = "cascade_recall"  # marks a tool message that shows recalled cases
WARNED = "cascade_warning"  # marks a tool message that is a warning, with its id: the tool has not run
_OBSERVATION = re.compile(r"\s*Observation[ \t]*\d*[ \t]*:[ \t]*")


class Record:
    """The messages of the latest ``_MAX_EPISODES`` episodes.

    Those of older episodes are dropped, since some are never taken. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: OrderedDict[str, list[BaseMessage]] = OrderedDict()

    def add(self, episode_id: str, messages: Sequence[BaseMessage]) -> None:
        """Record messages of an episode."""
        with self._lock:
            kept = self._messages.setdefault(episode_id, [])
            self._messages.move_to_end(episode_id)
            kept.extend(messages[: max(0, _MAX_MESSAGES - len(kept))])
            while len(self._messages) > _MAX_EPISODES:
                self._messages.popitem(last=False)

    def take(self, episode_id: str) -> list[BaseMessage]:
        """Return and remove the messages of an episode."""
        with self._lock:
            return self._messages.pop(episode_id, [])

    def __len__(self) -> int:
        """Return the number of episodes that are being recorded."""
        return len(self._messages)


def messages_in(value: object) -> list[BaseMessage]:
    """Return the messages in a state, a mapping or a list; an empty list if there are none."""
    found = read(value, "messages") if not isinstance(value, (list, tuple)) else value
    if isinstance(found, BaseMessage):
        return [found]
    if not isinstance(found, (list, tuple)) or not found:
        return []
    items = cast("Sequence[Any]", found)
    if any(isinstance(one, str) for one in items):
        return []  # plain texts: it is unknown who wrote them
    try:
        return convert_to_messages(cast("Sequence[AnyMessage]", items))
    except (ValueError, NotImplementedError, TypeError):
        return []  # a list of values that are not messages


def read(state: object, key: str) -> Any:
    """Return a field of a state, which may be a mapping, a dataclass or a pydantic model; None if there is none."""
    if isinstance(state, Mapping):
        return cast("Mapping[str, Any]", state).get(key)
    return getattr(state, key, None)


def text_of(message: BaseMessage) -> str:
    """Return a message's text, whatever its content blocks are, in a form that the memory can store."""
    return clean_text(str(message.text)).strip()


def task_in(messages: Sequence[BaseMessage]) -> tuple[str, str | None]:
    """Return the task asked last, and the id of its message; an empty task if it has no text or was already answered."""
    place = _last_asked(messages)
    if place is None or any(message.type == "ai" for message in messages[place + 1 :]):
        return "", None
    return text_of(messages[place])[:MAX_QUERY_CHARS], messages[place].id


def turn_in(messages: Sequence[BaseMessage], skip: Callable[[str], bool] | None = None) -> tuple[str, str | None, bool]:
    """Return the current task, the id of the message that asked it, and whether the user's last message only goes on with it.

    The task is empty if the user's last message is small talk, has no text, or was already answered. A message of the user for
    which ``skip`` returns True is no task.
    """
    text, _ = task_in(messages)
    if not text:
        return "", None, False
    places = [
        i
        for i, one in enumerate(messages)
        if one.type in ("human", "ai") and not (one.type == "human" and _is_observation(messages, i))
    ]
    kind, place = turns.task_in([(messages[i].type == "human", messages[i]) for i in places], text_of, skip)
    if kind == "small talk" or place is None:
        return "", None, False
    asked = messages[places[place]]
    return text_of(asked)[:MAX_QUERY_CHARS], asked.id, kind == "follow-up"


def since(messages: Sequence[BaseMessage], anchor: str | None) -> list[BaseMessage]:
    """Return the messages from the one with the id ``anchor`` on; if there is none, from the last human message on."""
    places = [i for i, message in enumerate(messages) if anchor is not None and message.id == anchor]
    place = places[-1] if places else _last_asked(messages)
    return list(messages if place is None else messages[place:])


def _last_asked(messages: Sequence[BaseMessage]) -> int | None:
    """Return the position of the last human message; ReAct observations have the same role, but do not count."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].type == "human" and not _is_observation(messages, place):
            return place
    return None


def _is_observation(messages: Sequence[BaseMessage], place: int) -> bool:
    before = messages[place - 1] if place else None
    looks_so = _OBSERVATION.match(text_of(messages[place])) is not None
    return looks_so and before is not None and before.type == "ai" and "Action:" in text_of(before)


def solution_in(messages: Sequence[BaseMessage], own: Collection[str] = (), outputs: object = None) -> Solution | None:
    """Return the solution: a trajectory if there were steps, otherwise the answer; None if there was neither.

    Recalled cases are left out, since they are not new. Calls that were answered with a warning are left out as well, since the
    tool did not run. Both are recognised by the tool message, which is marked or contains the memory's rendering of a case or
    a warning. Calls whose ids are in ``own`` are left out, too.

    If there is no answer as text, the structured answer in ``outputs`` is used, or else the result of the last tool.
    """
    replies = [message for message in messages if isinstance(message, AIMessage)]
    if not any(message.tool_calls for message in replies) and any(is_react(text_of(message)) for message in replies):
        return _react(messages)
    steps: list[Step] = []
    answer = ""
    for place, message in enumerate(messages):
        if not isinstance(message, AIMessage):
            continue
        text = text_of(message)
        if message.tool_calls:
            steps += _calls(message, text, _results(message, messages[place + 1 :]), own)
            answer = ""
        elif text:
            if answer:
                steps.append(Step(thought=cut_short(answer, MAX_FIELD_CHARS)))
            answer = text
    return as_solution(steps, answer or _unspoken(messages, outputs))


def model_in(messages: Sequence[BaseMessage]) -> str | None:
    """Return the name of the model that wrote the last of these messages that a model wrote; None if it has no name.

    >>> model_in([AIMessage("5", response_metadata={"model_name": "gpt-5.2"})])
    'gpt-5.2'
    """
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return model_named(message.response_metadata)
    return None


def model_named(*places: Mapping[str, Any] | None) -> str | None:
    """Return the name of a model from the first of these metadata that has one: most providers call it ``model_name``."""
    found = (place.get(key) for place in places if place for key in ("model_name", "model", "model_id"))
    return next((name for name in found if isinstance(name, str) and name), None)


def steps_in(messages: Sequence[BaseMessage]) -> Sequence[Step]:
    """Return the steps that the agent took since the last human message."""
    found = solution_in(since(messages, None))
    return found.steps if isinstance(found, Trajectory) else ()


def _unspoken(messages: Sequence[BaseMessage], outputs: object) -> str:
    structured = read(outputs, "structured_response")
    if structured is not None:
        return as_json(structured)
    last = messages[-1] if messages else None
    return text_of(last) if isinstance(last, ToolMessage) and not is_of_memory(last) else ""


def _results(message: AIMessage, after: Sequence[BaseMessage]) -> dict[str, ToolMessage]:
    """Return the first result after each call of a message, by the call's id: later messages may use the same ids again."""
    asked = {call["id"] for call in message.tool_calls}
    found: dict[str, ToolMessage] = {}
    for one in after:
        if isinstance(one, ToolMessage) and one.tool_call_id in asked:
            found.setdefault(one.tool_call_id, one)
            if len(found) == len(asked):
                break
    return found


def _calls(message: AIMessage, text: str, results: Mapping[str, ToolMessage], own: Collection[str]) -> list[Step]:
    steps: list[Step] = []
    for call in message.tool_calls:
        result = results.get(call["id"] or "")
        if call["name"] == TOOL_NAME or call["id"] in own or (result is not None and is_of_memory(result)):
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
        text = ""  # of several parallel calls, the first one gets the thought
    return steps


def is_of_memory(message: ToolMessage) -> bool:
    """Say whether a tool message shows recalled cases or a warning, which must not be stored again."""
    if any(message.additional_kwargs.get(mark) for mark in (RECALLED, WARNED)) or is_rendered(text_of(message)):
        return True
    artifact = message.artifact
    found = [read(one, "metadata") for one in cast("Sequence[Any]", artifact)] if isinstance(artifact, (list, tuple)) else []
    return any(isinstance(one, Mapping) and "cascade_episode_id" in one for one in found)


def _react(messages: Sequence[BaseMessage]) -> Solution | None:
    """Return the solution of a ReAct conversation; None if there is none.

    The agent's texts contain the steps, and each following human message is the observation of the last step.
    """
    steps: list[dict[str, str]] = []
    answer = ""
    for message in messages:
        text = text_of(message)
        if isinstance(message, AIMessage):
            found = read_react(text)
            answer = text if found is None else found.answer
            if found is not None:
                steps += [{"action": step.action, "thought": step.thought} for step in found.steps[:1]]
        elif steps and message.type in ("human", "tool", "function"):
            steps[-1]["observation"] = _OBSERVATION.sub("", text, count=1)
    final = answer.rsplit("Final Answer:", 1)[-1].strip()
    kept = [
        Step(
            action=cut_short(step["action"], MAX_FIELD_CHARS),
            thought=cut_short(step["thought"], MAX_FIELD_CHARS),
            observation=cut_short(step.get("observation", ""), MAX_FIELD_CHARS),
        )
        for step in steps
        if not is_rendered(step.get("observation", ""))
    ]
    return as_solution(kept, final)


def answer_in(output: object) -> str:
    """Return the final answer of a chain or graph as text; empty if it is unclear which part is the answer."""
    if isinstance(output, BaseMessage):
        return text_of(output)
    if isinstance(output, str):
        return clean_text(output).strip()
    if isinstance(output, Mapping):
        fields = cast("Mapping[str, Any]", output)
        return next((text for one in answer_among(fields) if (text := answer_in(one))), "")
    if isinstance(output, (list, tuple)):
        parts = cast("Sequence[Any]", output)
        return "\n".join(clean_text(one) for one in parts if isinstance(one, str)).strip()
    return str(output) if isinstance(output, (int, float)) else ""
