"""Somebody passes the memory itself: the error says what to pass."""

from __future__ import annotations

import pytest
from llama_agents import function_agent
from llama_index.core.memory import Memory

import cascade_memory
from cascade_memory.llama_index import CascadeMemory


@pytest.mark.parametrize("kind", [CascadeMemory, cascade_memory.CascadeMemory])
def test_as_a_block(kind: type):
    with kind(embedder="hashing") as memory, pytest.raises(AttributeError, match=r"memory_blocks=\[memory\.block\(\)\]"):
        Memory.from_defaults(memory_blocks=[memory])


def test_as_a_tool():
    with CascadeMemory(embedder="hashing") as memory, pytest.raises(AttributeError, match=r"tools=\[memory\.tool\(\)\]"):
        function_agent("hello", tools=[memory])


async def test_as_the_memory_of_a_run():
    with CascadeMemory(embedder="hashing") as memory, pytest.raises(AttributeError, match=r"call memory\.arun\(agent, task\)"):
        await function_agent("hello").run("hi", memory=memory)
