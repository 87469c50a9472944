"""Puts recalled cases into a model's input, without changing the history."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import BaseMessage, SystemMessage, convert_to_messages

from cascade_memory.cycle.chat_turns import Show, way_to_show

if TYPE_CHECKING:
    from cascade_memory.domain.recall import Recall


def shown(recall: Recall, show: Show | None) -> dict[str, Any]:
    """Return the recalled cases as fields of the episode that a graph keeps in its state; the values are plain JSON.

    With the turns comes the text, for a chat before which no turns can stand. Turns are returned twice: as text and, if there
    are tool calls, with these calls. Which tools the model is offered is known only when the model is called.
    """
    if way_to_show(recall, show) == "text":
        return {"context": recall.render()}
    steps = (case.solution.steps for case in recall.cases if not isinstance(case.solution, str))
    tools = {step.tool for some in steps for step in some if step.tool}
    turns = {"turns": recall.messages(), **({"calls": recall.messages(tools=tools)} if tools else {})}
    return {**turns, "context": recall.render()}


def with_cases(messages: Sequence[BaseMessage], episode: Mapping[str, Any], offered: Collection[str] = ()) -> list[BaseMessage]:
    """Return the messages with the cases of an episode: before the task as text, or before the whole chat as earlier turns.

    Turns come after the system messages and before all others, so that the real conversation stays together. If that begins
    with a message of the model, such as a greeting, the cases are text: many models want the two sides to take turns. Turns
    have tool calls only if all the called tools are in ``offered``: some providers refuse calls of other tools.
    """
    turns = cast("list[dict[str, Any]]", episode.get("turns") or [])
    place = next((i for i, message in enumerate(messages) if message.type != "system"), len(messages))
    if not turns or (place < len(messages) and messages[place].type != "human"):
        return before_task(messages, episode.get("context", ""), episode.get("anchor"))
    calls = cast("list[dict[str, Any]]", episode.get("calls") or [])
    called = {call["function"]["name"] for turn in calls for call in turn.get("tool_calls", ())}
    earlier = convert_to_messages(cast("Any", calls if called and called <= set(offered) else turns))
    return [*messages[:place], *earlier, *messages[place:]]


def before_task(messages: Sequence[BaseMessage], context: str, anchor: str | None) -> list[BaseMessage]:
    """Return the messages with the text ``context`` put before the text of one of them.

    This is the message with the id ``anchor``, or the first human message if none has this id. All earlier messages stay byte
    for byte the same, so that the provider's prompt cache can still be used for them.
    """
    changed = list(messages)
    if not context:
        return changed
    humans = [i for i, message in enumerate(messages) if message.type == "human"]
    place = next((i for i in humans if anchor is not None and messages[i].id == anchor), humans[0] if humans else None)
    if place is None:
        return changed
    changed[place] = messages[place].model_copy(update={"content": prefixed(messages[place].content, context)})
    return changed


def in_system(message: SystemMessage | None, context: str) -> SystemMessage | None:
    """Return the system message with the rendered cases (``context``) as its last block."""
    if not context:
        return message
    if message is None:
        return SystemMessage(content=context)
    content = cast("str | list[Any]", message.content)
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return message.model_copy(update={"content": [*blocks, {"type": "text", "text": context}]})


def prefixed(content: str | list[Any], context: str) -> str | list[Any]:
    r"""Put a text before a message's content.

    >>> prefixed("heat the cup", "CASES")
    'CASES\n\nheat the cup'
    """
    if isinstance(content, str):
        return f"{context}\n\n{content}"
    return [{"type": "text", "text": context}, *content]
