"""Recalled cases as LlamaIndex nodes, and as what a tool answers."""

from __future__ import annotations

import math
from collections.abc import Callable

from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel, Field

from cascade_memory.cycle.reuse import body
from cascade_memory.domain.recall import TOOL_DESCRIPTION, TOOL_FOUND_NOTHING, TOOL_NAME, TOOL_QUERY, Recall, RecalledCase
from cascade_memory.memory.threads import in_thread

CASE_ID, EPISODE_ID = "case_id", "cascade_episode_id"
_OURS = (CASE_ID, EPISODE_ID, "similarity", "predicted_success", "uncertainty")


def nodes(recall: Recall) -> list[NodeWithScore]:
    """Make one node per case, the most promising first, with the ranker's score."""
    return [_node(recall, case) for case in recall.cases]


def _node(recall: Recall, case: RecalledCase) -> NodeWithScore:
    numbers = (case.similarity, case.utility, case.uncertainty)
    ours = [case.id, recall.episode_id, *(_number(value) for value in numbers)]
    node = TextNode(
        id_=case.id,
        text=body(case),
        metadata={**case.metadata, **dict(zip(_OURS, ours, strict=True))},
        # The metadata is for the program: neither the model nor an embedder should see it.
        excluded_llm_metadata_keys=[*case.metadata, *_OURS],
        excluded_embed_metadata_keys=[*case.metadata, *_OURS],
    )
    return NodeWithScore(node=node, score=_number(case.score))


def _number(value: float) -> float | None:
    """Convert to a plain float, or to None if it is nan, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


class Question(BaseModel):
    """The arguments of the tool."""

    query: str = Field(description=TOOL_QUERY)


def recall_tool(recall: Callable[[str], Recall], name: str | None, description: str | None) -> FunctionTool:
    """Make a tool that returns the rendered cases; LlamaIndex's own ``RetrieverTool`` would change the query."""

    def answer(query: str) -> str:
        return recall(query).render() or TOOL_FOUND_NOTHING

    async def aanswer(query: str) -> str:
        return await in_thread(lambda: answer(query), ends_named=True)

    return FunctionTool.from_defaults(
        fn=answer,
        async_fn=aanswer,
        name=name or TOOL_NAME,
        description=description or TOOL_DESCRIPTION,
        fn_schema=Question,
    )
