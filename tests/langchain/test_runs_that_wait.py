"""A run that waits for a human: whoever resumes it, and however soon, is in the same episode."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from adding_agents import ask, paid
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from scripted import call, model

from cascade_memory.langchain import CascadeMemory


@tool
def send(x: str) -> str:
    """Send, if somebody agrees."""
    return f"sent, {interrupt('ok?')}"


async def test_a_run_resumed_the_next_moment_finds_its_episode(always: CascadeMemory):
    script = model(call("recall_cases", query="heat"), call("send", x="1"), "done")
    agent = create_agent(script, [always.tool(), send], checkpointer=InMemorySaver())

    async def one(i: int) -> None:
        config: Any = {"configurable": {"thread_id": f"t{i}"}, "callbacks": [always.callback]}
        await agent.ainvoke(ask("send it"), config)
        await agent.ainvoke(Command(resume="yes"), config)

    await asyncio.gather(*(one(i) for i in range(20)))
    await asyncio.to_thread(always.sync)
    assert paid(always) == [1.0] * 20
    assert always.episodes.pending() == []


@pytest.mark.parametrize("way", ["tool", "middleware"])
def test_an_attached_handler_knows_that_a_run_waits(always: CascadeMemory, way: str):
    script = (call("send", x="1"), "done")
    if way == "tool":
        agent = create_agent(
            model(call("recall_cases", query="heat"), *script), [always.tool(), send], checkpointer=InMemorySaver()
        )
    else:
        agent = create_agent(model(*script), [send], middleware=[always.middleware()], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    with always.attach():
        agent.invoke(ask("send it"), config)
        assert paid(always) == []
        assert [episode.ended for episode in always.episodes.pending()] == ["interrupted"]
        agent.invoke(Command(resume="yes"), config)
    assert paid(always) == [1.0]


def test_a_block_around_a_run_that_waits_leaves_the_episode_to_whoever_resumes_it(always: CascadeMemory):
    agent = create_agent(
        model(call("send", x="1"), "done"), [send], middleware=[always.middleware()], checkpointer=InMemorySaver()
    )
    config: Any = {"configurable": {"thread_id": "t"}}
    with always.episode("send it") as block:
        agent.invoke(ask("send it"), config)
    assert paid(always) == []
    agent.invoke(Command(resume="yes"), config)
    assert paid(always) == [1.0]
    assert always.engine.episodes.get(block.id).answer == "done"


def test_a_loop_that_approves_below_one_root_is_paid(always: CascadeMemory):
    script = model(call("recall_cases", query="heat"), call("send", x="1"), "done")
    agent = create_agent(script, [always.tool(), send], checkpointer=InMemorySaver())

    def loop(task: str, config: Any) -> str:
        asked: Any = ask(task)
        while "__interrupt__" in (out := agent.invoke(asked, {**config, "configurable": {"thread_id": "t"}})):
            asked = Command(resume="yes")
        return out["messages"][-1].text

    assert RunnableLambda(loop).invoke("send it", {"callbacks": [always.callback]}) == "done"
    assert paid(always) == [1.0]
