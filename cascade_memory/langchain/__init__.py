"""The memory for LangChain and LangGraph.

from cascade_memory.langchain import CascadeMemory
memory = CascadeMemory("./memory")
agent = create_agent(model, tools, middleware=[memory.middleware()])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.lazy import load

if TYPE_CHECKING:
    from cascade_memory.langchain.embeddings import LangChainEmbedder
    from cascade_memory.langchain.handler import CascadeCallbackHandler
    from cascade_memory.langchain.judge import LLMJudge
    from cascade_memory.langchain.langsmith import collect_feedback
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

_HOMES = {
    "CascadeCallbackHandler": "handler",
    "CascadeMemory": "retriever",
    "CascadeMiddleware": "middleware",
    "LLMJudge": "judge",
    "LangChainEmbedder": "embeddings",
    "collect_feedback": "langsmith",
}


_OPTIONAL = ("langchain", "langchain_core", "langgraph", "langsmith")
_REMEDY = 'which the extra "langchain" installs: pip install "cascade-memory[langchain]"'


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, name, _HOMES, optional=_OPTIONAL, remedy=_REMEDY)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
