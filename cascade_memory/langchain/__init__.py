"""The memory for LangChain and LangGraph.

from cascade_memory.langchain import CascadeMemory
memory = CascadeMemory("./memory")
agent = create_agent(model, tools, middleware=[memory.middleware()])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cascade_memory.errors import MissingExtra

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("langchain", "langchain_core", "langgraph", "langsmith"):
            raise
        raise MissingExtra(
            f'{__name__}.{name} needs {error.name}, which the extra "langchain" brings: pip install "cascade-memory[langchain]"'
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
