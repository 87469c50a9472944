"""The memory for LangChain and LangGraph.

from cascade_memory.langchain import CascadeMemory
memory = CascadeMemory("./memory")
agent = create_agent(model, tools, middleware=[memory.middleware()])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.langchain.embeddings import LangChainEmbedder
    from cascade_memory.langchain.handler import CascadeCallbackHandler
    from cascade_memory.langchain.judging import LLMJudge, collect_feedback
    from cascade_memory.langchain.middleware import CascadeMiddleware
    from cascade_memory.langchain.retriever import CascadeMemory

__all__ = [
    "CascadeCallbackHandler",
    "CascadeMemory",
    "CascadeMiddleware",
    "LLMJudge",
    "LangChainEmbedder",
    "collect_feedback",
]

__getattr__, __dir__ = door(
    __name__,
    {
        "embeddings": "LangChainEmbedder",
        "handler": "CascadeCallbackHandler",
        "judging": "LLMJudge collect_feedback",
        "middleware": "CascadeMiddleware",
        "retriever": "CascadeMemory",
    },
    optional=("langchain", "langchain_core", "langgraph", "langsmith"),
    remedy='which the extra "langchain" installs: pip install "cascade-memory[langchain]"',
)
