"""The memory for LlamaIndex.

from cascade_memory.llama_index import CascadeMemory
memory = CascadeMemory("./memory").install()
agent = FunctionAgent(llm=llm, tools=tools)
await agent.run("task", memory=Memory.from_defaults(memory_blocks=[memory.block()], insert_method="user"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cascade_memory.lazy import load

if TYPE_CHECKING:
    from cascade_memory.llama_index.block import CascadeMemoryBlock
    from cascade_memory.llama_index.embeddings import LlamaIndexEmbedder
    from cascade_memory.llama_index.retriever import CascadeMemory

__all__ = ["CascadeMemory", "CascadeMemoryBlock", "LlamaIndexEmbedder"]

_HOMES = {"CascadeMemory": "retriever", "CascadeMemoryBlock": "block", "LlamaIndexEmbedder": "embeddings"}


_OPTIONAL = ("llama_index", "llama_index_instrumentation", "workflows")
_REMEDY = 'which the extra "llama-index" installs: pip install "cascade-memory[llama-index]"'


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, name, _HOMES, optional=_OPTIONAL, remedy=_REMEDY)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
