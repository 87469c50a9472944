"""Reads from a run what its actions and its answer were, as a solution, and which model it used."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from llama_index.core.agent.workflow import AgentOutput
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.base.response.schema import AsyncStreamingResponse, PydanticResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from workflows.events import StopEvent

from cascade_memory.conversation import turns
from cascade_memory.domain.recall import TOOL_FOUND_NOTHING, TOOL_NAME
from cascade_memory.domain.trajectory import Solution, Step, Trajectory
from cascade_memory.domain.transcript import MAX_FIELD_CHARS, answer_among, as_json, as_solution, is_rendered, tool_step
from cascade_memory.domain.validation import MAX_QUERY_CHARS, clean_text
from cascade_memory.redaction.marking import cut_short

_NOTHING_FOUND = "Empty Response"  # the answer of a query engine that found no node and did not call its model


def model_in(result: Any) -> str | None:
    """Return the name of the model from the provider's own response in a response or an agent's result; None if it has none.

    >>> from llama_index.core.base.llms.types import CompletionResponse
    >>> model_in(CompletionResponse(text="5", raw={"model": "gpt-5.2"})), model_in("5")
    ('gpt-5.2', None)
    """
    if type(result) is StopEvent:
        result = result.result
    raw = getattr(result, "raw", None)
    for key in ("model", "model_version"):
        name = cast("Mapping[str, Any]", raw).get(key) if isinstance(raw, Mapping) else getattr(raw, key, None)
        if isinstance(name, str) and name:
            return name
    return None


def name_of_model(llm: object) -> str | None:
    """Return the name under which a model is asked; None if it does not say.

    >>> from llama_index.core.llms import MockLLM
    >>> name_of_model(MockLLM()), name_of_model(None)
    ('unknown', None)
    """
    if isinstance(llm, BaseLLM):
        with contextlib.suppress(Exception):  # some models compute their metadata, and cannot for a name that they do not know
            return llm.metadata.model_name
    return None


def text_of(message: ChatMessage) -> str:
    """Return the text of a message without characters that the memory refuses."""
    return clean_text("\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))).strip()


@dataclass(frozen=True, slots=True)
class Turn:
    """What the last message of the user asks."""

    task: str  # the task that it is, or goes on with; empty if it is small talk
    goes_on: bool = False
    begun: str = ""  # digest of the conversation up to the task


def turn_in(messages: Sequence[ChatMessage]) -> Turn:
    """Return what the last message of the user is: a task, a message that goes on with one, or small talk."""
    said = [one for one in messages if one.role.value in ("user", "assistant")]
    kind, place = turns.task_in([(one.role.value == "user", one) for one in said], text_of)
    if kind == "small talk" or place is None:
        return Turn("")
    until = json.dumps([(one.role.value, text_of(one)) for one in said[: place + 1]]).encode()
    begun = hashlib.blake2b(until, digest_size=16).hexdigest()
    return Turn(text_of(said[place])[:MAX_QUERY_CHARS], kind == "follow-up", begun)


def grown(earlier: Solution | None, later: Solution | None) -> Solution | None:
    """Return one solution that joins what was done for a task with what was done when the user went on with it.

    >>> grown("Which number?", "It arrives on Monday.").answer
    'It arrives on Monday.'
    """
    if earlier is None or later is None:
        return later or earlier
    (steps, answer), (more, last) = _parts(earlier), _parts(later)
    said = [Step(thought=cut_short(answer, MAX_FIELD_CHARS))] if answer else []
    return as_solution([*steps, *said, *more], last)


def _parts(solution: Solution) -> tuple[Sequence[Step], str]:
    return (solution.steps, solution.answer) if isinstance(solution, Trajectory) else ((), solution)


def solution_in(result: Any, own_tools: Collection[str] = ()) -> Solution | None:
    """Make a solution from the tool calls and the answer in a run's result, without recalled cases, which are nothing new.

    ``own_tools`` are the names of this memory's recall tools.
    """
    if isinstance(result, StopEvent):
        result = result.result if type(result) is StopEvent else as_json(result)
    if not isinstance(result, AgentOutput):
        return as_solution([], _answer(result))
    steps = [_step(call) for call in cast("Sequence[Any]", result.tool_calls) if not _is_own(call, own_tools)]
    answer = text_of(result.response)
    if not answer and result.structured_response is not None:
        answer = as_json(result.structured_response)
    return as_solution(steps, answer)


def _is_own(call: Any, own_tools: Collection[str]) -> bool:
    seen = _observation(call)
    return call.tool_name in {TOOL_NAME, *own_tools} or seen == TOOL_FOUND_NOTHING or is_rendered(seen)


def _step(call: Any) -> Step:
    output = getattr(call, "tool_output", None)  # missing where a tool's result was returned directly
    failed = bool(getattr(output, "is_error", False))
    return tool_step(call.tool_name, call.tool_kwargs, observation=_observation(call), failed=failed)


def _observation(call: Any) -> str:
    output = getattr(call, "tool_output", None)
    return "" if output is None else str(output.content)


def _answer(value: Any) -> str:
    """Return the answer of a query engine or a custom workflow as text; empty if the result does not show which part it is."""
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
    spoken = getattr(value, "response", None)  # the Response of a query engine has it
    found = _answer(spoken) if isinstance(spoken, (str, ChatMessage)) else ""
    return "" if found == _NOTHING_FOUND else found


def is_streamed(result: Any) -> bool:
    """Say whether a result is a stream, whose answer comes only after the run has ended."""
    return isinstance(result, (StreamingResponse, AsyncStreamingResponse, StreamingAgentChatResponse))
