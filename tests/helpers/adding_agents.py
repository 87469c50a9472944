"""What the LangChain tests have in common: an agent that adds, what it is asked, and what was paid for it."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool
from scripted import call, model

from cascade_memory.langchain import CascadeMemory


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def explode() -> str:
    """Fail."""
    raise RuntimeError("the tool exploded")


def ask(text: str = "what is 2 + 3?") -> dict[str, Any]:
    return {"messages": [("user", text)]}


def watched(memory: CascadeMemory, **more: Any) -> dict[str, Any]:
    return {"callbacks": [memory.callback], **more}


def solver() -> Any:
    """Return a model that adds and answers."""
    return model(call("add", "I add them.", a=2, b=3), "It is 5.")


def adding(memory: CascadeMemory) -> Any:
    """Return an agent that recalls, adds and answers."""
    script = model(call("recall_cases", query="2 + 3"), call("add", "I add them.", a=2, b=3), "It is 5.")
    return create_agent(script, [memory.tool(), add])


def failing(memory: CascadeMemory, *script: Any, tools: Any = ()) -> Any:
    """Return an agent that recalls, and then does as the script says."""
    return create_agent(model(call("recall_cases", query="2 + 3"), *script), [memory.tool(), *tools])


def paid(memory: CascadeMemory) -> list[float]:
    """Return the rewards, oldest first."""
    memory.sync()
    return [value for value, _ in memory.engine.episodes.rewards()]


def assert_clean(memory: CascadeMemory) -> None:
    memory.sync()
    assert memory.callback.open_runs == 0
    assert memory.health().failures == {}
