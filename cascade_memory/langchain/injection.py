"""Puts recalled cases into a model's input, without changing the history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage, SystemMessage


def before_task(messages: Sequence[BaseMessage], context: str, anchor: str | None) -> list[BaseMessage]:
    """Return the messages with the context before the text of the message ``anchor`` (by default the first human message).

    All earlier messages stay byte for byte the same, so that the provider's prompt cache can still be used for them.
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
    """Append the context to the system message as its last block."""
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
