"""The recall tool, for agents that decide themselves when to recall."""

from __future__ import annotations

from collections.abc import Callable

from llama_index.core.tools import FunctionTool
from pydantic import BaseModel, Field

from cascade_memory.domain import recall_tool as texts
from cascade_memory.domain.recall import Recall
from cascade_memory.memory.threads import in_thread


class Question(BaseModel):
    """The arguments of the tool."""

    query: str = Field(description=texts.QUERY)


def recall_tool(recall: Callable[[str], Recall], name: str | None, description: str | None) -> FunctionTool:
    """Make a tool that returns the rendered cases; LlamaIndex's own ``RetrieverTool`` would change the query."""

    def answer(query: str) -> str:
        return recall(query).render() or texts.NOTHING

    async def aanswer(query: str) -> str:
        return await in_thread(lambda: answer(query), ends_named=True)

    return FunctionTool.from_defaults(
        fn=answer,
        async_fn=aanswer,
        name=name or texts.NAME,
        description=description or texts.DESCRIPTION,
        fn_schema=Question,
    )
