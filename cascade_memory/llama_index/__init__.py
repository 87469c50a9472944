"""The memory for LlamaIndex.

from cascade_memory.llama_index import CascadeMemory
memory = CascadeMemory("./memory").install()
agent = FunctionAgent(llm=llm, tools=tools)
await agent.run("task", memory=Memory.from_defaults(memory_blocks=[memory.block()], insert_method="user"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascade_memory.lazy import door

if TYPE_CHECKING:
    from cascade_memory.llama_index.block import CascadeMemoryBlock
    from cascade_memory.llama_index.embeddings import LlamaIndexEmbedder
    from cascade_memory.llama_index.retriever import CascadeMemory

__all__ = ["CascadeMemory", "CascadeMemoryBlock", "LlamaIndexEmbedder"]

__getattr__, __dir__ = door(
    __name__,
    {
        "block": "CascadeMemoryBlock",
        "embeddings": "LlamaIndexEmbedder",
        "retriever": "CascadeMemory",
    },
    optional=("llama_index", "llama_index_instrumentation", "workflows"),
    remedy='which the extra "llama-index" installs: pip install "cascade-memory[llama-index]"',
)
