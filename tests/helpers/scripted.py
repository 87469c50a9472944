"""A chat model that follows a script: the one part of these tests that is not real."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

Script = Callable[[list[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """Answers what its script says, and keeps what it was shown."""

    script: Any
    _seen: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def seen(self) -> list[list[BaseMessage]]:
        return self._seen

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        self._seen.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.script(messages))])


def call(name: str, text: str = "", **arguments: Any) -> AIMessage:
    """Return a message that calls a tool."""
    return AIMessage(
        content=text, tool_calls=[{"name": name, "args": arguments, "id": f"call_{uuid.uuid4().hex[:8]}", "type": "tool_call"}]
    )


def steps(*script: str | AIMessage | Exception | Callable[[list[BaseMessage]], AIMessage]) -> Script:
    """Return a script that takes one step per model call since the last human message."""

    def play(messages: list[BaseMessage]) -> AIMessage:
        done = 0
        for message in reversed(messages):
            if message.type == "human":
                break
            done += message.type == "ai"
        step = script[min(done, len(script) - 1)]
        if isinstance(step, Exception):
            raise step
        if isinstance(step, str):
            return AIMessage(step)
        if isinstance(step, AIMessage):
            return step.model_copy(update={"id": None})
        return step(messages)

    return play


def model(*script: Any) -> ScriptedModel:
    """Return a model that plays these steps."""
    return ScriptedModel(script=steps(*script))
