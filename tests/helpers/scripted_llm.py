"""A LlamaIndex model that follows a script: the one part of these tests that is not real."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata, MessageRole
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from pydantic import PrivateAttr

Call = tuple[str, dict[str, Any]]  # a tool's name and its arguments
Step = str | Call | list[Call] | Exception | Callable[[list[ChatMessage]], Any]


class ScriptedLLM(FunctionCallingLLM):
    """Takes one step of its script per call since the last user message, and keeps what it was shown."""

    script: Any
    pause: float = 0.0
    calls_tools: bool = True
    _seen: list[list[ChatMessage]] = PrivateAttr(default_factory=list)

    @property
    def seen(self) -> list[list[ChatMessage]]:
        return self._seen

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=self.calls_tools, model_name="scripted", context_window=100_000)

    def _answer(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        self._seen.append(list(messages))
        done = 0
        for message in reversed(messages):
            if message.role == MessageRole.USER and not str(message.content).startswith("Observation"):
                break
            done += message.role == MessageRole.ASSISTANT
        step: Step = self.script[min(done, len(self.script) - 1)]
        found = step(list(messages)) if callable(step) else step
        if isinstance(found, Exception):
            raise found
        if isinstance(found, str):
            return ChatResponse(message=ChatMessage(role="assistant", content=found), delta=found)
        calls = [
            (name, arguments, f"call_{uuid.uuid4().hex[:8]}")
            for name, arguments in ([found] if isinstance(found, tuple) else found)
        ]
        return ChatResponse(message=ChatMessage(role="assistant", content="", additional_kwargs={"calls": calls}), delta="")

    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return self._answer(messages)

    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        await asyncio.sleep(self.pause)
        return self._answer(messages)

    def stream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> Any:
        yield self._answer(messages)

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> Any:
        async def stream() -> Any:
            await asyncio.sleep(self.pause)
            yield self._answer(messages)

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        text = str(self._answer([ChatMessage(role="user", content=prompt)]).message.content)
        return CompletionResponse(text=text, delta=text)

    async def acomplete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return self.complete(prompt)

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        yield self.complete(prompt)

    async def astream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        async def stream() -> Any:
            yield self.complete(prompt)

        return stream()

    def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any) -> dict[str, Any]:
        asked = (
            [] if user_msg is None else [ChatMessage(role="user", content=user_msg) if isinstance(user_msg, str) else user_msg]
        )
        return {"messages": [*(chat_history or []), *asked]}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **_: Any
    ) -> list[ToolSelection]:
        calls = response.message.additional_kwargs.get("calls", [])
        return [ToolSelection(tool_name=name, tool_kwargs=arguments, tool_id=id_) for name, arguments, id_ in calls]
