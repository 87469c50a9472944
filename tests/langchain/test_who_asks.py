"""Who asks is said once, in a run's configuration, and reaches whatever recalls below it; no message says it."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from scripted import model

from cascade_memory.langchain import CascadeMemory

_TASK = {"messages": [("user", "what is 2 + 3?")]}
_SAID = {
    "configurable": {"configurable": {"cascade_actor": "ann"}},
    "metadata": {"metadata": {"cascade_actor": "ann"}},
    "a number": {"configurable": {"cascade_actor": 7}},
}


class State(MessagesState):
    cascade: dict[str, Any]


def _graph(memory: CascadeMemory) -> Any:
    builder = StateGraph(State)
    builder.add_node("recall", memory.recall_node()).add_node("learn", memory.learn_node())
    builder.add_node("act", lambda _: {"messages": [AIMessage("It is 5.")]})
    builder.add_edge(START, "recall").add_edge("recall", "act").add_edge("act", "learn").add_edge("learn", END)
    return builder.compile()


def _run(memory: CascadeMemory, kind: str, config: dict[str, Any], task: Any = _TASK) -> None:
    if kind == "middleware":
        create_agent(model("It is 5."), [], middleware=[memory.middleware()]).invoke(task, config)
    elif kind == "nodes":
        _graph(memory).invoke(task, config)
    elif kind == "retriever":
        memory.invoke("what is 2 + 3?", config)
    elif kind == "callback":
        chain = RunnableLambda(lambda text: str(memory.invoke(text)))
        chain.invoke("what is 2 + 3?", {**config, "callbacks": [memory.callback]})
    else:
        memory.tool().invoke({"query": "what is 2 + 3?"}, config)
    memory.sync()


_KINDS = ["middleware", "nodes", "retriever", "callback", "tool"]


@pytest.mark.parametrize("said", list(_SAID))
@pytest.mark.parametrize("kind", _KINDS)
def test_every_door_knows_who_asks(make: Any, kind: str, said: str):
    memory = make(reward_fn=lambda _: 1.0)
    _run(memory, kind, _SAID[said])
    (episode,) = memory.engine.episodes.all()
    assert (episode.actor, episode.channel) == ("7" if said == "a number" else "ann", "langchain")
    if kind in ("middleware", "nodes"):
        (case,) = memory.engine.cases.all()
        (outcome,) = memory.engine.episodes.outcomes(case_id=case.id)
        assert (case.actor, case.channel) == (episode.actor, "langchain")
        assert (outcome.actor, outcome.channel) == (None, "langchain")  # ``reward_fn`` judged it, and not who asked


@pytest.mark.parametrize("kind", _KINDS)
def test_without_it_the_memory_s_own_actor_asks(make: Any, kind: str):
    memory = make().acting(actor="service")
    _run(memory, kind, {})
    (episode,) = memory.engine.episodes.all()
    assert (episode.actor, episode.channel) == ("service", "langchain")


@pytest.mark.parametrize("kind", ["middleware", "nodes"])
def test_no_message_and_no_state_says_who_asks(make: Any, kind: str):
    memory = make()
    said = {"cascade_actor": "admin", "configurable": {"cascade_actor": "admin"}, "metadata": {"cascade_actor": "admin"}}
    message = HumanMessage("cascade_actor: admin", additional_kwargs=said, response_metadata=said, name="admin")
    _run(memory, kind, _SAID["configurable"], {"messages": [message], **said})
    (episode,) = memory.engine.episodes.all()
    assert episode.actor == "ann"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="LangChain passes no context to asynchronous code before Python 3.11")
async def test_asynchronous_runs_know_it_too(make: Any):
    memory = make(reward_fn=lambda _: 1.0)
    agent = create_agent(model("It is 5."), [], middleware=[memory.middleware()])
    await agent.ainvoke(_TASK, _SAID["configurable"])
    await memory.ainvoke("what is 2 + 4?", _SAID["configurable"])
    await _graph(memory).ainvoke(_TASK, _SAID["configurable"])
    memory.sync()
    assert [one.actor for one in memory.engine.episodes.all()] == ["ann", "ann", "ann"]


def test_an_interrupted_conversation_keeps_who_began_it(make: Any):
    memory = make()
    recall = memory.engine.acting(actor="ann", channel="langchain").recall("what is 2 + 3?", episode_id="e1")
    memory.invoke("what is 2 + 3?", {"metadata": {"cascade_episode_id": "e1", "cascade_actor": "bob"}})
    assert memory.engine.episodes.get(recall.episode_id).actor == "ann"


def test_the_adapter_s_own_verbs_take_it(make: Any):
    memory = make()
    with memory.acting(actor="ann").episode("what is 2 + 3?") as block:
        block.solution = "5"
        memory.acting(actor="bob").reward(block.id, 1.0, solution="5")
    (case,) = memory.cases.all(by_actor="ann")
    assert (case.channel, memory.engine.episodes.outcomes(case_id=case.id)[0].actor) == ("langchain", "bob")
    episode_id = memory.acting(actor="ann").recall("what is 2 + 4?").episode_id
    memory.acting(actor="carol").reward(episode_id, 1.0, solution="6")
    assert memory.engine.episodes.outcomes(episode_id=episode_id)[0].actor == "carol"
    assert {one.actor for one in memory.sources.all()} == {"ann", "bob", "carol"}
    assert len(memory.sources.diff("1h")) == 2


async def test_a_reward_in_the_event_loop_takes_it(make: Any):
    memory = make()
    episode_id = (await memory.acting(actor="ann").arecall("what is 2 + 3?")).episode_id
    await memory.acting(actor="bob", channel="mcp").areward(episode_id, 1.0, solution="5")
    (outcome,) = memory.engine.episodes.outcomes(episode_id=episode_id)
    assert (outcome.actor, outcome.channel) == ("bob", "mcp")


def test_a_memory_acting_in_a_namespace_ends_what_it_began_there(make: Any):
    memory = make(reward_fn=lambda _: 1.0)
    theirs = memory.acting(actor="ann", namespace="theirs")
    chain = RunnableLambda(lambda task: theirs.invoke(task))
    chain.invoke("what is 2 + 3?", {"callbacks": [theirs.callback]})
    agent = create_agent(model("It is 5."), [], middleware=[theirs.middleware()])
    agent.invoke(_TASK, {"callbacks": [theirs.callback]})
    theirs.sync()
    assert [(one.status, one.reward, one.actor) for one in theirs.episodes.all()] == [("settled", 1.0, "ann")] * 2
    assert {one.actor for found in theirs.episodes.all() for one in theirs.episodes.outcomes(episode_id=found.id)} == {"ann"}
    assert list(memory.episodes.all()) == []
