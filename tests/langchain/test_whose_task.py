"""Whose task it is, said once in a run's configuration, reaches whatever recalls below it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from scripted import model

from cascade_memory.langchain import CascadeMemory

_ANN = {"metadata": {"cascade_metadata": {"user": "ann"}}}
_TASK = {"messages": [("user", "what is 2 + 3?")]}


class State(MessagesState):
    cascade: dict[str, Any]


def _agent(memory: CascadeMemory) -> Any:
    return create_agent(model("It is 5."), [], middleware=[memory.middleware()])


def _graph(memory: CascadeMemory) -> Any:
    builder = StateGraph(State)
    builder.add_node("recall", memory.recall_node()).add_node("learn", memory.learn_node())
    builder.add_node("act", lambda _: {"messages": [AIMessage("It is 5.")]})
    builder.add_edge(START, "recall").add_edge("recall", "act").add_edge("act", "learn").add_edge("learn", END)
    return builder.compile()


@pytest.mark.parametrize("judged", [None, 1.0])
@pytest.mark.parametrize("kind", ["middleware", "nodes", "retriever", "callback", "tool", "block", "door"])
def test_a_run_that_says_so_is_found_again(make: Any, kind: str, judged: float | None):
    options = {"metadata": _ANN["metadata"]} if kind == "door" else {}
    memory = make(reward_fn=lambda _: judged, **options)
    memory.engine.recall("bob's", metadata={"user": "bob"})
    if kind == "middleware":
        _agent(memory).invoke(_TASK, _ANN)
    elif kind == "nodes":
        _graph(memory).invoke(_TASK, _ANN)
    elif kind == "retriever":
        memory.invoke("what is 2 + 3?", _ANN)
    elif kind == "door":
        memory.invoke("what is 2 + 3?")
    elif kind == "callback":
        chain = RunnableLambda(lambda task: str(memory.invoke(task)))
        chain.invoke("what is 2 + 3?", {**_ANN, "callbacks": [memory.callback]})
    elif kind == "tool":
        memory.tool().invoke({"query": "what is 2 + 3?"}, _ANN)
    else:
        with memory.episode("what is 2 + 3?", metadata={"user": "ann"}) as episode:
            episode.solution = "5"
    memory.sync()
    receipt = memory.engine.forget(where={"user": "ann"})
    assert receipt.episodes == 1
    assert memory.engine.forget(where={"user": "bob"}).episodes == 1
    assert memory.engine.stats().cases == 0
