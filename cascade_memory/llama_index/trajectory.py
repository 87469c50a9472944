"""What a run did and answered, as a solution."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from llama_index.core.agent.workflow import AgentOutput
from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.base.response.schema import AsyncStreamingResponse, PydanticResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from workflows.events import StopEvent

from cascade_memory.domain import recall_tool
from cascade_memory.domain.trajectory import Solution, Step
from cascade_memory.domain.transcript import answer_among, as_json, is_rendered, made, tool_step
from cascade_memory.domain.validation import MAX_QUERY_CHARS, clean_text

_NOTHING_FOUND = "Empty Response"  # what a query engine says that found no node; it did not ask its model


def text_of(message: ChatMessage) -> str:
    """Return the text of a message, as the memory can store it."""
    return clean_text("\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))).strip()


def task_in(messages: Sequence[ChatMessage]) -> str:
    """Return what the user asked last."""
    return next((text_of(one)[:MAX_QUERY_CHARS] for one in reversed(messages) if one.role.value == "user"), "")


def solution_in(result: Any, own_tools: Collection[str] = ()) -> Solution | None:
    """Return the tool calls and the answer of a run's result; recalled cases are left out: they are no new experience.

    ``own_tools`` are names under which this memory offers its recalls.
    """
    if isinstance(result, StopEvent):
        result = result.result if type(result) is StopEvent else as_json(result)
    if not isinstance(result, AgentOutput):
        return made([], _answer(result))
    steps = [_step(call) for call in cast("Sequence[Any]", result.tool_calls) if not _is_own(call, own_tools)]
    answer = text_of(result.response)
    if not answer and result.structured_response is not None:
        answer = as_json(result.structured_response)
    return made(steps, answer)


def _is_own(call: Any, own_tools: Collection[str]) -> bool:
    seen = _observation(call)
    return call.tool_name in {recall_tool.NAME, *own_tools} or seen == recall_tool.NOTHING or is_rendered(seen)


def _step(call: Any) -> Step:
    output = getattr(call, "tool_output", None)  # missing where a tool's result was returned directly
    failed = bool(getattr(output, "is_error", False))
    return tool_step(call.tool_name, call.tool_kwargs, observation=_observation(call), failed=failed)


def _observation(call: Any) -> str:
    output = getattr(call, "tool_output", None)
    return "" if output is None else str(output.content)


def _answer(value: Any) -> str:
    """Return the answer of a query engine or of a workflow of one's own, as text; empty where nothing says which it is."""
    if isinstance(value, str):
        return clean_text(value).strip()
    if isinstance(value, ChatMessage):
        return text_of(value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return next((text for one in answer_among(fields) if (text := _answer(one))), "")
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, PydanticResponse):
        return "" if value.response is None else as_json(value.response)
    spoken = getattr(value, "response", None)  # a query engine's Response
    found = _answer(spoken) if isinstance(spoken, (str, ChatMessage)) else ""
    return "" if found == _NOTHING_FOUND else found


def is_streamed(result: Any) -> bool:
    """Say whether the answer is still to come when the run has ended."""
    return isinstance(result, (StreamingResponse, AsyncStreamingResponse, StreamingAgentChatResponse))
