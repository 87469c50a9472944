"""Putting recalled cases before a model, without touching the history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage, SystemMessage


def before_task(messages: Sequence[BaseMessage], context: str, anchor: str | None) -> list[BaseMessage]:
    """Return the messages with the context put before the text of the one that asked (else, of the first human one).

    Everything up to that message stays byte for byte what it was, so that a provider's prompt cache keeps its prefix.
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
    """Return the system message with the context as its last block."""
    if not context:
        return message
    if message is None:
        return SystemMessage(content=context)
    content = cast("str | list[Any]", message.content)
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return message.model_copy(update={"content": [*blocks, {"type": "text", "text": context}]})


def prefixed(content: str | list[Any], context: str) -> str | list[Any]:
    r"""Return a message's content with a text before it.

    >>> prefixed("heat the cup", "CASES")
    'CASES\n\nheat the cup'
    """
    if isinstance(content, str):
        return f"{context}\n\n{content}"
    return [{"type": "text", "text": context}, *content]
