"""Recalled cases for LangChain: as documents, or as what a tool answers, for agents that decide themselves when to recall."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from cascade_memory.cycle.reuse import body
from cascade_memory.domain import recall_tool as texts
from cascade_memory.domain.recall import Recall, RecalledCase
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

    query: str = Field(description=texts.QUERY)


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
        return found.render() or texts.NOTHING, [one.model_dump() for one in documents(found)]

    async def aanswer(query: str, config: RunnableConfig, callbacks: Any = None) -> tuple[str, list[dict[str, Any]]]:
        named = EPISODE_KEY in (config.get("metadata") or {})
        return await in_thread(lambda: answer(query, config, callbacks), ends_named=not named)

    return StructuredTool.from_function(
        answer,
        aanswer,
        name=name or texts.NAME,
        description=description or texts.DESCRIPTION,
        args_schema=Question,
        response_format="content_and_artifact",
    )
