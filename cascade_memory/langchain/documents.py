"""Recalled cases for LangChain: as documents, as what a tool answers, or in a model's input.

A tool is for agents that decide themselves when to recall. Put into a model's input, cases do not change the history.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, SystemMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from cascade_memory.cycle.chat_turns import Show, way_to_show
from cascade_memory.cycle.reuse import body
from cascade_memory.domain.recall import TOOL_DESCRIPTION, TOOL_FOUND_NOTHING, TOOL_NAME, TOOL_QUERY, Recall, RecalledCase
from cascade_memory.langchain.run_tree import ACTOR_KEY, EPISODE_KEY, actor_in
from cascade_memory.memory.threads import in_thread


def documents(recall: Recall) -> list[Document]:
    """Return one document per case. The metadata is plain JSON, so that a checkpointer can store it."""
    return [_document(recall, case) for case in recall.cases]


def _document(recall: Recall, case: RecalledCase) -> Document:
    return Document(
        id=case.id,
        page_content=body(case),
        metadata={
            **case.metadata,
            "case_id": case.id,
            "cascade_episode_id": recall.episode_id,
            "similarity": _number(case.similarity),
            "predicted_success": _number(case.utility),
            "uncertainty": _number(case.uncertainty),
        },
    )


def _number(value: float) -> float | None:
    """Return a plain float, or None for nan: checkpointers cannot store numpy's floats, and JSON has no nan."""
    return float(value) if math.isfinite(value) else None


class Question(BaseModel):
    """The arguments of the tool."""

    query: str = Field(description=TOOL_QUERY)


def recall_tool(
    recall: Callable[[str, UUID | None, Mapping[str, Any] | None], Recall],
    name: str | None,
    description: str | None,
) -> BaseTool:
    """Build a tool that answers with the rendered cases as its content, and with their documents as its artifact."""

    def answer(query: str, config: RunnableConfig, callbacks: Any = None) -> tuple[str, list[dict[str, Any]]]:
        # LangChain passes the tool's own run as ``callbacks``; those of the config belong to the node around the tool.
        fields: dict[str, Any] = dict(config.get("metadata") or {})
        if (actor := actor_in(fields, config.get("configurable"))) is not None:
            fields[ACTOR_KEY] = actor
        found = recall(query, getattr(callbacks, "parent_run_id", None), fields)
        # Plain JSON, so that a checkpointer can store it: no Document, no numpy.
        return found.render() or TOOL_FOUND_NOTHING, [one.model_dump() for one in documents(found)]

    async def aanswer(query: str, config: RunnableConfig, callbacks: Any = None) -> tuple[str, list[dict[str, Any]]]:
        named = EPISODE_KEY in (config.get("metadata") or {})
        return await in_thread(lambda: answer(query, config, callbacks), ends_named=not named)

    return StructuredTool.from_function(
        answer,
        aanswer,
        name=name or TOOL_NAME,
        description=description or TOOL_DESCRIPTION,
        args_schema=Question,
        response_format="content_and_artifact",
    )


def shown(recall: Recall, show: Show | None) -> dict[str, Any]:
    """Return the recalled cases as fields of the episode that a graph keeps in its state; the values are plain JSON.

    With the turns comes the text, for a chat before which no turns can stand. Turns are returned twice: as text and, if there
    are tool calls, with these calls. Which tools the model is offered is known only when the model is called.
    """
    if way_to_show(recall, show) == "text":
        return {"context": recall.render()}
    steps = (case.solution.steps for case in recall.cases if not isinstance(case.solution, str))
    tools = {step.tool for some in steps for step in some if step.tool}
    turns = {"turns": recall.messages(), **({"calls": recall.messages(tools=tools)} if tools else {})}
    return {**turns, "context": recall.render()}


def with_cases(messages: Sequence[BaseMessage], episode: Mapping[str, Any], offered: Collection[str] = ()) -> list[BaseMessage]:
    """Return the messages with the cases of an episode: before the task as text, or before the whole chat as earlier turns.

    Turns come after the system messages and before all others, so that the real conversation stays together. If that begins
    with a message of the model, such as a greeting, the cases are text: many models want the two sides to take turns. Turns
    have tool calls only if all the called tools are in ``offered``: some providers refuse calls of other tools.
    """
    turns = cast("list[dict[str, Any]]", episode.get("turns") or [])
    place = next((i for i, message in enumerate(messages) if message.type != "system"), len(messages))
    if not turns or (place < len(messages) and messages[place].type != "human"):
        return before_task(messages, episode.get("context", ""), episode.get("anchor"))
    calls = cast("list[dict[str, Any]]", episode.get("calls") or [])
    called = {call["function"]["name"] for turn in calls for call in turn.get("tool_calls", ())}
    earlier = convert_to_messages(cast("Any", calls if called and called <= set(offered) else turns))
    return [*messages[:place], *earlier, *messages[place:]]


def before_task(messages: Sequence[BaseMessage], context: str, anchor: str | None) -> list[BaseMessage]:
    """Return the messages with the text ``context`` put before the text of one of them.

    This is the message with the id ``anchor``, or the first human message if none has this id. All earlier messages stay byte
    for byte the same, so that the provider's prompt cache can still be used for them.
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
    """Return the system message with the rendered cases (``context``) as its last block."""
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
