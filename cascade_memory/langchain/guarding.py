"""Warns a model before a tool runs: the warning takes the place of the tool's answer. If the model insists, the tool runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from cascade_memory.langchain.messages import WARNED, messages_in, read, steps_in
from cascade_memory.langchain.run_tree import EPISODE_KEY
from cascade_memory.runs.around import active_episode
from cascade_memory.runs.ending import fail_open

if TYPE_CHECKING:
    from cascade_memory.capabilities.warnings.verbs import Warnings
    from cascade_memory.domain.failure_warning import Advice
    from cascade_memory.langchain.handler import CascadeCallbackHandler
    from cascade_memory.memory.memory import Memory

_EDITED = "hitl_edited_tool_calls"  # where LangChain's human in the loop keeps the calls that a person has changed


class ToolGuard(TypedDict):
    """The arguments of a ``ToolNode`` whose tools are guarded: ``ToolNode(tools, **memory.tool_guard())``."""

    wrap_tool_call: Callable[[Any, Callable[[Any], Any]], Any]
    awrap_tool_call: Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]


def warning_before(memory: Memory, request: Any, episode_id: str, namespace: str | None) -> ToolMessage | None:
    """Return the warning that the model gets instead of the tool's answer; None if the tool may run, or the memory fails."""
    with fail_open(memory, "check"):
        if (asked := _question(request)) is not None and (known := _known(memory, namespace)) is not None:
            return _answer(request, known.check(episode_id, **asked))
    return None


async def awarning_before(memory: Memory, request: Any, episode_id: str, namespace: str | None) -> ToolMessage | None:
    """Do what ``warning_before`` does, without blocking the event loop."""
    with fail_open(memory, "check"):
        if (asked := _question(request)) is not None and (known := _known(memory, namespace)) is not None:
            return _answer(request, await known.acheck(episode_id, **asked))
    return None


def _known(memory: Memory, namespace: str | None) -> Warnings | None:
    """Return ``memory.warnings`` of a namespace; None if the package comes without the capability ``warnings``."""
    return getattr(memory.acting(namespace=namespace), "warnings", None)


def _question(request: Any) -> dict[str, Any] | None:
    """Return the arguments of ``warnings.check`` for a tool call; None if a person has edited the call and so decided."""
    call = request.tool_call
    if call["id"] in (read(request.state, _EDITED) or ()):
        return None
    messages = messages_in(request.state)
    done = partial(steps_in, messages) if messages else None
    return {"tool": call["name"], "arguments": call["args"], "done": done, "call_id": _turn(messages, call["id"])}


def _turn(messages: Sequence[BaseMessage], call_id: str | None) -> str | None:
    """Return an id of the model's message that made a call; it is the same when a graph runs the call again.

    All calls of one message get the same decision from the memory, since the model sees no result before all of them are done.
    The id of a call cannot be used here, since some models use the same id in every message.
    """
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, AIMessage) and call_id in [call["id"] for call in message.tool_calls]:
            return message.id or f"message {place}"
    return call_id


def _answer(request: Any, advice: Advice | None) -> ToolMessage | None:
    if advice is None:
        return None
    call = request.tool_call
    marked = {WARNED: advice.warning.id}
    return ToolMessage(advice.text, name=call["name"], tool_call_id=call["id"] or "", status="error", additional_kwargs=marked)


def tool_guard(memory: Memory, handler: CascadeCallbackHandler, *, key: str) -> ToolGuard:
    """Implement ``CascadeMemory.tool_guard``."""

    def wrap_tool_call(request: Any, execute: Callable[[Any], Any]) -> Any:
        found = _episode_of(memory, handler, request, key)
        warning = None if found is None else warning_before(memory, request, *found)
        return execute(request) if warning is None else warning

    async def awrap_tool_call(request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
        found = _episode_of(memory, handler, request, key)
        warning = None if found is None else await awarning_before(memory, request, *found)
        return await execute(request) if warning is None else warning

    return {"wrap_tool_call": wrap_tool_call, "awrap_tool_call": awrap_tool_call}


def _episode_of(memory: Memory, handler: CascadeCallbackHandler, request: Any, key: str) -> tuple[str, str | None] | None:
    """Return the id and the namespace of the episode that a tool call belongs to; None if there is none.

    The episode is found in the graph's state, in the user's ``with`` block, or by the outermost run.
    """
    with fail_open(memory, "check"):
        kept = cast("Mapping[str, Any]", read(request.state, key) or {}).get("id")
        around = active_episode(memory)
        if around is not None and kept in (None, around.episode_id):
            return around.episode_id, around.namespace
        if kept is not None:
            return str(kept), None
        config = request.runtime.config
        metadata = config.get("metadata") or {}
        run = handler.runs.find(getattr(config.get("callbacks"), "parent_run_id", None), metadata)
        if run is not None and run.root.opened:
            return run.root.episode_id, None
        named = metadata.get(EPISODE_KEY)
        return None if named is None else (str(named), None)
    return None
