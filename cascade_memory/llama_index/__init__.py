"""The memory for LlamaIndex.

from cascade_memory.llama_index import CascadeMemory
memory = CascadeMemory("./memory").install()
agent = FunctionAgent(llm=llm, tools=tools)
await agent.run("task", memory=Memory.from_defaults(memory_blocks=[memory.block()], insert_method="user"))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cascade_memory.errors import MissingExtra

if TYPE_CHECKING:
    from cascade_memory.llama_index.block import CascadeMemoryBlock
    from cascade_memory.llama_index.embeddings import LlamaIndexEmbedder
    from cascade_memory.llama_index.retriever import CascadeMemory

__all__ = ["CascadeMemory", "CascadeMemoryBlock", "LlamaIndexEmbedder"]

_HOMES = {"CascadeMemory": "retriever", "CascadeMemoryBlock": "block", "LlamaIndexEmbedder": "embeddings"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("llama_index", "llama_index_instrumentation", "workflows"):
            raise
        raise MissingExtra(
            f'{__name__}.{name} needs {error.name}, which the extra "llama-index" brings: '
            'pip install "cascade-memory[llama-index]"'
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
