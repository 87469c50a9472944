"""LlamaIndex agents with a scripted model, for tests."""

from __future__ import annotations

from typing import Any

from inside import engine_of
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import InsertMethod, Memory
from scripted_llm import ScriptedLLM

TASK = "what is 2 + 3, please?"
ADDING = ("add", {"a": 2, "b": 3})


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def function_agent(*script: Any, tools: Any = (add,), **options: Any) -> FunctionAgent:
    llm_options = {key: options.pop(key) for key in ("pause",) if key in options}
    return FunctionAgent(llm=ScriptedLLM(script=list(script), **llm_options), tools=list(tools), **options)


def with_block(memory: Any, how: InsertMethod = InsertMethod.USER) -> Memory:
    return Memory.from_defaults(session_id="s", memory_blocks=[memory.block()], insert_method=how)


def only_episode(memory: Any) -> Any:
    memory.sync()
    (episode,) = engine_of(memory).parts.ledger.episodes.listed(None)
    return episode
