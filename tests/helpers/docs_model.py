"""What answers in the documentation instead of a real chat model: it multiplies, with a tool if it has one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from scripted import ScriptedModel, call


def multiplier(name: str, **_: Any) -> ScriptedModel:
    """Stand in for ``init_chat_model``."""
    assert ":" in name
    return _Multiplier(script=None)


class _Multiplier(ScriptedModel):
    tools: bool = False

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self.model_copy(update={"tools": bool(tools), "script": _with_tool})

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self.script = self.script or _alone


def _task(messages: Sequence[BaseMessage]) -> tuple[int, int]:
    text = next(message.text for message in reversed(messages) if message.type == "human")
    a, b = re.findall(r"(\d+) times (\d+)", text)[-1]
    return int(a), int(b)


def _with_tool(messages: list[BaseMessage]) -> AIMessage:
    if messages[-1].type == "tool":
        return AIMessage(f"It is {messages[-1].text}.")
    a, b = _task(messages)
    return call("multiply", a=a, b=b)


def _alone(messages: list[BaseMessage]) -> AIMessage:
    a, b = _task(messages)
    return AIMessage(f"It is {a * b}.")
