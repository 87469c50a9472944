"""Whose task it is, said once in a run's configuration, reaches whatever recalls below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from adding_agents import ask
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from scripted import model

from cascade_memory.errors import InvalidInput
from cascade_memory.langchain import CascadeMemory

Make = Callable[..., CascadeMemory]

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


def place(state: Any) -> Any:
    return state["messages"][-1].text.removeprefix("ticket: ") if state["messages"][-1].text.startswith("ticket: ") else None


@pytest.mark.parametrize("asked", ["ticket: heat the cup", "thanks a lot!"])
@pytest.mark.parametrize("how", ["a function", "skip"])
def test_a_function_says_what_is_a_task_and_what_is_none(make: Make, asked: str, how: str):
    memory = make(reward_fn=lambda episode: True)
    options: Any = {"query": place} if how == "a function" else {"skip": lambda text: not text.startswith("ticket: ")}
    agent = create_agent(model("microwave it"), [], middleware=[memory.middleware(**options)])
    found = agent.invoke(ask(asked))
    cases = [(case.query, case.solution) for case in memory.cases.all()]
    task = "heat the cup" if how == "a function" else "ticket: heat the cup"
    assert cases == ([(task, "microwave it")] if asked.startswith("ticket") else [])
    assert bool(found["cascade_episode_id"]) is asked.startswith("ticket")
    assert memory.stats().recalls == asked.startswith("ticket")


def _talking(memory: CascadeMemory, door: str, answers: list[str]) -> Callable[[str], dict[str, Any]]:
    """A conversation in which a message that begins with a slash is no task; returns how to say something in it."""
    replies: Any = GenericFakeChatModel(messages=iter([AIMessage(answer) for answer in answers]))
    options: Any = {"skip": lambda text: text.startswith("/")}
    saver = InMemorySaver()
    if door == "middleware":
        agent: Any = create_agent(replies, [], middleware=[memory.middleware(**options)], checkpointer=saver)
    else:
        builder = StateGraph(State)
        builder.add_node("recall", memory.recall_node(**options)).add_node("learn", memory.learn_node())
        builder.add_node("act", lambda state: {"messages": [replies.invoke(state["messages"])]})
        builder.add_edge(START, "recall").add_edge("recall", "act").add_edge("act", "learn").add_edge("learn", END)
        agent = builder.compile(checkpointer=saver)
    return lambda said: agent.invoke({"messages": [("user", said)]}, {"configurable": {"thread_id": "t"}})


@pytest.mark.parametrize("door", ["middleware", "nodes"])
@pytest.mark.parametrize("command", ["/help", "/reset the conversation", "/how do I reset a whole conversation?"])
def test_a_message_that_is_skipped_changes_nothing_and_the_user_can_go_on(make: Make, door: str, command: str):
    judged: list[str] = []

    def judge(episode: Any) -> bool:
        judged.append(episode.query)
        return True

    memory = make(reward_fn=judge)
    say = _talking(memory, door, ["It arrives on Monday.", "Commands begin with a slash.", "The stove as well."])
    first = say("Where is my tent?")
    before = [(case.id, case.solution) for case in memory.cases.all()]
    skipped = say(command)
    assert judged == ["Where is my tent?"]
    assert [(case.id, case.solution) for case in memory.cases.all()] == before
    assert memory.stats().episodes == memory.stats().recalls == 1
    if door == "middleware":
        assert (bool(first["cascade_episode_id"]), skipped["cascade_episode_id"]) == (True, None)
    say("and the stove?")
    assert judged == ["Where is my tent?"] * 2
    assert memory.stats().episodes == memory.stats().recalls == 1
    (case,) = memory.cases.all()
    solution = str(case.solution)
    assert case.query == "Where is my tent?"
    assert all(one in solution for one in ("It arrives on Monday.", "Commands begin with", "The stove as well."))


@pytest.mark.parametrize("door", ["middleware", "nodes"])
def test_after_a_message_that_is_skipped_the_first_one_is_a_task_whatever_it_sounds_like(make: Make, door: str):
    memory = make(reward_fn=lambda _: True)
    say = _talking(memory, door, ["Commands begin with a slash.", "It arrives on Monday."])
    say("/reset the conversation")
    assert memory.stats().episodes == 0
    say("and the stove?")
    assert [(case.query, case.solution) for case in memory.cases.all()] == [("and the stove?", "It arrives on Monday.")]


def test_the_solution_is_taken_from_where_it_is_said_to_be(make: Make):
    memory = make(reward_fn=lambda episode: True)
    middleware = memory.middleware(solution=lambda state: state["messages"][-1].text.upper())
    create_agent(model("microwave it"), [], middleware=[middleware]).invoke(ask("heat the cup"))
    assert [case.solution for case in memory.cases.all()] == ["MICROWAVE IT"]


def test_a_key_that_is_not_in_the_state_is_counted_and_the_agent_goes_on(make: Make):
    memory = make(reward_fn=lambda episode: True)
    agent = create_agent(model("microwave it"), [], middleware=[memory.middleware(query="tiket")])
    assert agent.invoke(ask("heat the cup"))["messages"][-1].text == "microwave it"
    said = memory.health().last_error or ""
    assert "middleware(query='tiket') found nothing under this key: the state has " in said
    assert "messages" in said
    assert memory.health().failures == {"recall": 1}


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda memory: memory.middleware(query=3), "query must be a key of the state or a function of it, not int"),
        (lambda memory: memory.middleware(solution=4), "solution must be a key of the state or a function of it, not int"),
        (lambda memory: memory.middleware(skip="hi"), "skip must be a function, not str"),
        (lambda memory: memory.recall_node(query=3), "query must be a key of the state or a function of it, not int"),
        (lambda memory: memory.learn_node(reward=1.0), "reward must be a function, not float"),
        (lambda memory: memory.inject([], "abc"), "needs state"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_runs(make: Make, build: Callable[[Any], object], says: str):
    with pytest.raises(InvalidInput, match=says):
        build(make())
