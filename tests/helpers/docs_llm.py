"""What answers in the documentation instead of LlamaIndex's OpenAI: it multiplies, with its tool."""

from __future__ import annotations

import re
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from scripted_llm import ScriptedLLM


class OpenAI(ScriptedLLM):
    """Stands in for ``llama_index.llms.openai.OpenAI``."""

    def __init__(self, model: str, **_: Any) -> None:
        super().__init__(script=[_calls, _tells])


def _calls(messages: list[ChatMessage]) -> Any:
    a, b = re.findall(r"(\d+) times (\d+)", str(messages[-1].content))[-1]
    return ("multiply", {"a": int(a), "b": int(b)})


def _tells(messages: list[ChatMessage]) -> str:
    return f"It is {messages[-1].content}."
