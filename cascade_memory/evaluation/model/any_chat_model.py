"""Any LangChain chat model as the model of the benchmark."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from cascade_memory.errors import InvalidInput, ModelUnavailable
from cascade_memory.evaluation.model.chat import Message, Note, PromptTooLong, Reply, ToolCall, Try
from cascade_memory.evaluation.model.responses import is_too_long

_SETTINGS = ("temperature", "top_p", "presence_penalty", "max_tokens", "model_kwargs", "extra_body")


class AnyChatModel:
    """Wraps a LangChain ``BaseChatModel``, whose own settings decide about sampling, timeouts and retries.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> AnyChatModel(FakeListChatModel(responses=["42"])).complete([{"role": "user", "content": "6 * 7?"}]).text
    '42'
    """

    def __init__(self, model: Any, name: str | None = None) -> None:
        if not hasattr(model, "invoke"):
            raise InvalidInput(
                f"AnyChatModel needs a LangChain chat model, such as init_chat_model(...), not a {type(model).__name__}"
            )
        self._model = model
        named = name or getattr(model, "model_name", None) or getattr(model, "model", None)
        self.name = named if isinstance(named, str) else type(model).__name__
        self.settings = {one: value for one in _SETTINGS if _is_plain(value := getattr(model, one, None)) and value is not None}

    def with_tools(self, tools: Sequence[Mapping[str, Any]]) -> AnyChatModel:
        """Return a model that offers these tools with every request, described as in OpenAI's chat API."""
        try:
            found = AnyChatModel(self._model.bind_tools(list(tools)), self.name)
        except NotImplementedError as error:
            raise InvalidInput(f"{self.name} cannot call tools: choose a model that can") from error
        found.settings = {**self.settings, "tools": list(tools)}
        return found

    def complete(self, messages: Sequence[Message], note: Note = lambda _: None) -> Reply:
        """Return the reply; any error of the model is raised as ``ModelUnavailable``."""
        began = time.monotonic()
        try:
            message = self._model.invoke(list(messages), {"callbacks": []})
        except Exception as error:
            message = f"{self.name}: {type(error).__name__}: {error}"
            too_long = is_too_long(400, str(error))
            note(Try(number=1, seconds=time.monotonic() - began, error=message, too_long=too_long))
            if too_long:
                raise PromptTooLong(message) from error
            raise ModelUnavailable(f"{message}; for more attempts, create the model with more retries (max_retries)") from error
        usage = message.usage_metadata or {}
        calls = tuple(
            ToolCall(str(call["id"] or f"call_{number}"), str(call["name"]), json.dumps(call["args"], default=str))
            for number, call in enumerate(getattr(message, "tool_calls", ()))
        )
        tokens = int(usage.get("input_tokens", 0)), int(usage.get("output_tokens", 0))
        reply = Reply(str(message.text), *tokens, calls)
        note(Try(number=1, seconds=time.monotonic() - began, reply=reply))
        return reply


def _is_plain(value: Any) -> bool:
    """Say whether a row can store this value."""
    try:
        return json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        return False
