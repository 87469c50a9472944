"""Parallel agents, blocks, failed recalls, copies: a reward goes to the run that earned it."""

from __future__ import annotations

import copy
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from adding_agents import ask, paid
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from scripted import ScriptedModel, model

from cascade_memory.errors import InvalidInput
from cascade_memory.langchain import CascadeMemory

Make = Callable[..., CascadeMemory]


def test_parallel_agents_below_one_root_are_paid_each_for_its_own(make: Make):
    memory = make(reward_fn=lambda episode: float("GOOD" in episode.answer))

    def slow(text: str, seconds: float) -> ScriptedModel:
        def script(_: Any) -> AIMessage:
            time.sleep(seconds)
            return AIMessage(text)

        return ScriptedModel(script=script)

    builder = StateGraph(MessagesState)
    builder.add_node("a", create_agent(slow("BAD", 0.02), [], middleware=[memory.middleware()]))
    builder.add_node("b", create_agent(slow("GOOD", 0.2), [], middleware=[memory.middleware()]))
    builder.add_edge(START, "a").add_edge(START, "b").add_edge("a", END).add_edge("b", END)
    builder.compile().invoke(ask("task"), {"callbacks": [memory.callback], "run_id": uuid.uuid4()})
    assert sorted(paid(memory)) == [0.0, 1.0]


def test_a_block_joins_the_nodes_of_a_graph_and_takes_the_last_answer(always: CascadeMemory):
    class State(MessagesState):
        cascade: dict[str, Any]

    builder = StateGraph(State).add_node("recall", always.recall_node()).add_node("learn", always.learn_node())
    builder.add_node("act", lambda _: {"messages": [AIMessage("It is 42.")]})
    builder.add_edge(START, "recall").add_edge("recall", "act").add_edge("act", "learn").add_edge("learn", END)
    plan = create_agent(model("PLAN"), [], middleware=[always.middleware()])
    with always.episode("6 * 7") as block:
        plan.invoke(ask("plan it"))
        builder.compile().invoke(ask("6 * 7"))
    assert paid(always) == [1.0]
    assert always.stats().episodes == 1
    assert always.engine.episodes.get(block.id).answer == "It is 42."


def test_a_turn_whose_recall_failed_carries_no_id_of_an_earlier_turn(always: CascadeMemory, monkeypatch: pytest.MonkeyPatch):
    agent = create_agent(model("ok"), [], middleware=[always.middleware()], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    assert agent.invoke(ask("one"), config)["cascade_episode_id"]

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(always.engine, "recall", broken)
    assert agent.invoke(ask("write a poem about autumn"), config).get("cascade_episode_id") is None


def test_runs_that_are_no_chain_leave_nothing_behind(always: CascadeMemory):
    config: Any = {"callbacks": [always.callback]}
    for _ in range(5):
        model("hello").invoke("hi", config)
        always.invoke("heat", config)
        with always.episode("q"):
            always.invoke("heat")
    assert always.callback.open_runs == 0


def test_handler_and_middleware_survive_a_deep_copy(always: CascadeMemory):
    middleware = always.middleware()
    assert copy.deepcopy(middleware) is middleware
    assert copy.deepcopy({"callbacks": [always.callback]})["callbacks"][0] is always.callback


def test_a_memory_has_a_name_and_no_configurable_fields(make: Make):
    assert make(name="cases").get_name() == "cases"
    with pytest.raises(InvalidInput, match="with each call"):
        make().configurable_fields(k=None)
